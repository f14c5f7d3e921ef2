import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { resourceOf } from "../../../operator/cluster/resources.ts";
import type { Manifest } from "../../../operator/manifest.ts";
import { type Certificate, selfSigned } from "../../support/certificate.ts";
import { type ControlPlane, type ControlPlaneAddress, controlPlane } from "../../support/control-plane.ts";
import { installForeignKinds } from "../../support/foreign-kinds.ts";
import { installCrds, kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** What others put in the operator's way: quotas, admission webhooks and policies of other products, names that are taken. */

/** Its own: webhooks and admission policies belong to the whole cluster. */
let plane: ControlPlane;
let address: ControlPlaneAddress;
let house: OperatorHouse;
let certificate: Certificate;

beforeAll(async () => {
  certificate = await selfSigned();
  plane = await controlPlane({
    controllerManager: true,
    prepare: async (started) => {
      await installCrds(started);
      await installForeignKinds(started, "keda");
    },
  });
  address = plane.address;
});

afterAll(() => plane.stop());

beforeEach(async () => {
  house = await OperatorHouse.open({}, address);
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
});

const says = (type: string, what: RegExp, name?: string) =>
  house.until(async () => what.test(await house.condition(type, name)), `${type} ${what}`);

async function apply(object: object): Promise<void> {
  await kubectlOrThrow(address, ["apply", "-f", "-"], JSON.stringify(object));
}

describe("a ResourceQuota", () => {
  it("that leaves no room for a child is named, with what it counts; nothing is stuck once there is room", async () => {
    const spec = { hard: { "count/deployments.apps": "1" } };
    const metadata = { name: "small", namespace: house.namespace };
    const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata, spec };
    await apply(quota);
    // its controller, which does not run here, would count
    const status = { hard: spec.hard, used: { "count/deployments.apps": "0" } };
    const patch = [
      "patch",
      "resourcequota",
      "small",
      "-n",
      house.namespace,
      "--subresource=status",
      "--type=merge",
    ];
    await kubectlOrThrow(address, [...patch, "-p", JSON.stringify({ status })]);
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    const named =
      /^False QuotaExceeded: .*exceeded quota: small.*count\/deployments.apps=1.*Raise the namespace's ResourceQuota/;
    await says("Ready", named);
    await kubectlOrThrow(address, ["delete", "resourcequota", "small", "-n", house.namespace]);
    await house.serve("demo-api", "demo-mist");
    await says("Ready", /^True/);
  });
});

interface Verdict {
  readonly allowed: boolean;
  readonly message?: string;
}

describe("an admission webhook of another product", () => {
  let server: Server;
  let answer: (kind: string) => Verdict | Promise<Verdict>;

  beforeEach(async () => {
    answer = () => ({ allowed: true });
    server = createServer(certificate, async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const { apiVersion, kind, request: asked } = JSON.parse(Buffer.concat(pieces).toString());
      const { allowed, message } = await answer(asked.kind.kind);
      const verdict = { uid: asked.uid, allowed, ...(message && { status: { message, code: 403 } }) };
      response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ apiVersion, kind, response: verdict }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    await apply({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: house.namespace },
      webhooks: [
        {
          name: "guard.example.com",
          clientConfig: {
            url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
            caBundle: certificate.cert.toString("base64"),
          },
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": house.namespace } },
          rules: [
            {
              apiGroups: ["apps", ""],
              apiVersions: ["v1"],
              operations: ["*"],
              resources: ["deployments", "services"],
            },
            {
              apiGroups: ["keda.sh"],
              apiVersions: ["v1alpha1"],
              operations: ["*"],
              resources: ["scaledobjects"],
            },
          ],
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          timeoutSeconds: 2,
        },
      ],
    });
    // the API server takes it up by a watch
    const probe = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "probe", namespace: house.namespace },
    };
    answer = () => ({ allowed: false });
    await house.until(async () => {
      const made = await house.admin.create({ ...probe, spec: { ports: [{ port: 1 }] } }).then(
        () => true,
        () => false,
      );
      if (made) await house.remove("Service", "probe");
      return !made;
    }, "the webhook");
  });

  afterEach(async () => {
    await kubectlOrThrow(address, ["delete", "validatingwebhookconfiguration", house.namespace]);
    server.closeAllConnections();
    server.close();
  });

  it("that refuses Deployments is named with its words; everything else is made, and all of it once it agrees", async () => {
    answer = (kind) =>
      kind === "Deployment" ? { allowed: false, message: "images must be signed" } : { allowed: true };
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await says(
      "Stalled",
      /^True AdmissionDenied: .*guard\.example\.com, which is not part of svc-tts: .*images must be signed/,
    );
    await house.mustGet("Service", "demo-api");
    await house.until(async () => {
      const { status } = await house.pool("demo-mist");
      return status?.conditions.find(({ type }) => type === "Stalled")?.reason === "AdmissionDenied";
    }, "the pool's word");
    answer = () => ({ allowed: true });
    await house.serve("demo-api", "demo-mist");
    await says("Ready", /^True/);
  });

  it("KEDA's own holds back no pod, and finds no HorizontalPodAutoscaler beside the ScaledObject, which it would refuse", async () => {
    const name = "demo-mist";
    const scaledBy = (provider: string) => [
      { name: "mist", kind: "mist", scaling: { provider, minReplicas: 1, maxReplicas: 2 } },
    ];
    answer = (kind) => ({ allowed: kind !== "ScaledObject", message: "not today" });
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({}, scaledBy("KEDA"));
    await house.until(async () => (await house.get("Deployment", name)) !== undefined, "the pods");
    await house.putDeployment({}, scaledBy("HPA"));
    await house.until(async () => (await house.get("HorizontalPodAutoscaler", name)) !== undefined, "an HPA");
    answer = async (kind) => ({
      allowed: kind !== "ScaledObject" || (await house.get("HorizontalPodAutoscaler", name)) === undefined,
      message: "the workload is already managed by the hpa",
    });
    await house.putDeployment({}, scaledBy("KEDA"));
    await house.until(async () => (await house.get("ScaledObject", name)) !== undefined, "a ScaledObject");
    expect(await house.get("HorizontalPodAutoscaler", name)).toBeUndefined();
  });

  it("that does not answer is named, and waited for", async () => {
    server.closeAllConnections();
    server.close();
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await says(
      "Ready",
      /^False WebhookUnreachable: .*guard\.example\.com, which is not part of svc-tts and does not answer/,
    );
    expect(await house.condition("Stalled")).toMatch(/^False/);
  });
});

it("a ValidatingAdmissionPolicy that refuses our pods' template is named", async () => {
  const metadata = { name: `no-pods-${house.namespace}` };
  const apiVersion = "admissionregistration.k8s.io/v1";
  const resourceRules = [
    { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] },
  ];
  const expression = "object.metadata.name != 'demo-api'";
  const validations = [{ expression, message: "no API today" }];
  await apply({
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata,
    spec: { matchConstraints: { resourceRules }, validations },
  });
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": house.namespace } };
  const spec = {
    policyName: metadata.name,
    validationActions: ["Deny"],
    matchResources: { namespaceSelector },
  };
  await apply({ apiVersion, kind: "ValidatingAdmissionPolicyBinding", metadata, spec });
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const probe = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "demo-api", namespace: house.namespace },
    spec: { selector: { matchLabels: { a: "b" } }, template },
  };
  await house.until(async () => {
    const made = await house.admin.create(probe).then(
      () => true,
      () => false,
    );
    if (made) await house.remove("Deployment", "demo-api");
    return !made;
  }, "the policy");
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment();
  await says("Stalled", /^True AdmissionDenied: .*ValidatingAdmissionPolicy 'no-pods-.*no API today/);
  for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"])
    await kubectlOrThrow(address, ["delete", kind, metadata.name]);
});

const selector = { matchLabels: { a: "b" } };
const containers = [{ name: "c", image: "i" }];
const template = { metadata: { labels: { a: "b" } }, spec: { containers } };

/** By kind and the end of its name: one object of somebody else. */
const foreign: [string, string, object][] = [
  ["ServiceAccount", "model", {}],
  ["Role", "api", { rules: [] }],
  ["RoleBinding", "api", { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "x" } }],
  ["ConfigMap", "routing", { data: { a: "b" } }],
  ["Secret", "token", { stringData: { token: "theirs", accepted: "theirs" } }],
  ["Service", "api", { spec: { ports: [{ port: 1 }] } }],
  ["Deployment", "api", { spec: { selector, template } }],
  ["Deployment", "mist", { spec: { selector, template } }],
  ["TtsModelPool", "mist", { spec: { deployment: "other", pool: "mist", kind: "mist" } }],
  ["PodDisruptionBudget", "mist", { spec: { selector, maxUnavailable: 1 } }],
  ["Ingress", "api", { spec: { defaultBackend: { service: { name: "s", port: { number: 1 } } } } }],
  ["NetworkPolicy", "model", { spec: { podSelector: {} } }],
];

it("a name that is taken, of any kind, is told, and what has it is left as it is", async () => {
  await house.putLicense(await house.issuer.issue({ maxStreams: 1000 }));
  const before = new Map<string, Manifest>();
  for (const [index, [kind, end, content]] of foreign.entries()) {
    const name = `d${index}`;
    const { apiVersion } = resourceOf(kind);
    const metadata = {
      name: `${name}-${end}`,
      namespace: house.namespace,
      labels: { "tts.svc.dev/deployment": name },
    };
    before.set(name, await house.admin.create({ apiVersion, kind, metadata, ...content }));
    const api = { route: { hostnames: [`${name}.example.com`], ingress: {} } };
    await house.putDeployment({ api, networkPolicy: { enabled: true } }, undefined, name);
  }
  for (const [index, [kind, end]] of foreign.entries()) {
    const what = new RegExp(
      `^True NameTaken: .*${kind} ${house.namespace}/d${index}-${end} was not made by this operator`,
    );
    await says("Stalled", what, `d${index}`);
  }
  await house.idle();
  for (const [index, [kind, end]] of foreign.entries()) {
    const now = await house.mustGet(kind, `d${index}-${end}`);
    const was = before.get(`d${index}`);
    // a pool that nobody made is told so in its own status
    const told = ["resourceVersion", "managedFields"];
    const kept = (object: typeof was) =>
      Object.entries(object?.metadata ?? {}).filter(
        ([field]) => kind !== "TtsModelPool" || !told.includes(field),
      );
    expect({ kind, metadata: kept(now), spec: now.spec }).toEqual({
      kind,
      metadata: kept(was),
      spec: was?.spec,
    });
  }
});

it("a TtsModelPool that somebody wrote by hand is told that nothing runs for it", async () => {
  const metadata = { name: "mine", namespace: house.namespace };
  const pool = { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsModelPool", metadata };
  await house.admin.create({ ...pool, spec: { deployment: "demo", pool: "mine", kind: "mist" } });
  await house.until(async () => {
    const { conditions = [] } = (await house.pool("mine")).status ?? {};
    const stalled = conditions.find(({ type }) => type === "Stalled");
    return stalled?.reason === "NotManaged" && /spec\.models of a TtsDeployment/.test(stalled.message);
  }, "NotManaged");
  expect(await house.get("Deployment", "mine")).toBeUndefined();
});

it("clocks that differ are told, as what a license is judged by", async () => {
  await house.ready();
  expect(await house.condition("ClockInStep")).toBe("absent");
  await house.stopOperator();
  await house.startOperator({ clockAheadMs: -3 * 3_600_000 });
  await says("ClockInStep", /^False ClockSkew: The operator's clock is 3 hours behind the API server's/);
  expect(await house.condition("LicenseValid")).toMatch(/^False Invalid: .*starts at .*clock/);
  await house.stopOperator();
  await house.startOperator();
  await says("ClockInStep", /^absent/);
  await says("Ready", /^True/);
});
