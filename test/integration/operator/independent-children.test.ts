import { afterEach, beforeEach, expect, inject, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

const address = inject("controlPlane");
const apiVersion = "admissionregistration.k8s.io/v1";
let house: OperatorHouse;

beforeEach(async () => {
  house = await OperatorHouse.open();
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
});

const route = { api: { route: { hostnames: ["speech.example.com"], ingress: {} } } };

it("an Ingress that admission refuses holds back no other child, and is made once it is allowed", async () => {
  const name = `no-ingress-${house.namespace}`;
  await kubectlOrThrow(address, ["apply", "-f", "-"], JSON.stringify(refusalOfIngresses(name)));
  await eventually("the policy to refuse an Ingress", () => refusesIngresses());

  await house.putLicense(await house.issuer.issue());
  await house.putDeployment({ ...route, networkPolicy: { enabled: true } });
  await house.serve("demo-api", "demo-mist");
  await house.until(
    async () =>
      /^False AdmissionDenied: Ingress demo-api .*no host today/.test(await house.condition("Ready")),
    "the refusal in the condition",
  );
  for (const [kind, child] of [
    ["NetworkPolicy", "demo-model"],
    ["TtsModelPool", "demo-mist"],
    ["Deployment", "demo-mist"],
    ["Deployment", "demo-api"],
  ] as const)
    await house.mustGet(kind, child);

  await house.putDeployment(route);
  await house.until(
    async () => (await house.get("NetworkPolicy", "demo-model")) === undefined,
    "children that the spec no longer names to be removed beside a refusal",
  );

  await kubectlOrThrow(address, [
    "delete",
    "validatingadmissionpolicybinding,validatingadmissionpolicy",
    name,
  ]);
  await house.until(async () => (await house.get("Ingress", "demo-api")) !== undefined, "the Ingress");
  await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
});

function refusalOfIngresses(name: string): object {
  const resourceRules = [
    {
      apiGroups: ["networking.k8s.io"],
      apiVersions: ["v1"],
      operations: ["CREATE"],
      resources: ["ingresses"],
    },
  ];
  const policy = {
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules },
      validations: [{ expression: "false", message: "no host today" }],
    },
  };
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": house.namespace } };
  const binding = {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"], matchResources: { namespaceSelector } },
  };
  return { apiVersion: "v1", kind: "List", items: [policy, binding] };
}

/** The API server reads a policy by a watch, some time after it was accepted. */
async function refusesIngresses(): Promise<boolean> {
  const probe = {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: "probe", namespace: house.namespace },
    spec: { defaultBackend: { service: { name: "s", port: { number: 1 } } } },
  };
  try {
    await house.admin.create(probe);
  } catch (error) {
    expect(String(error)).toContain("no host today");
    return true;
  }
  await house.remove("Ingress", "probe");
  return false;
}
