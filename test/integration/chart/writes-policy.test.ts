/**
 * Tests the ValidatingAdmissionPolicy for the operator's Secrets on a real API server, with the operator's
 * ServiceAccount and the rights of the chart.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { kubectl, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { eventually } from "../../support/eventually.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

const address = inject("controlPlane");
const chart = join(import.meta.dirname, "../../../charts/tts-operator");

let house: OperatorHouse;
let policies: string;

/** The name of the ServiceAccount to which `chartsRole` binds the roles of the chart. */
const account = () => `system:serviceaccount:${house.namespace}:${house.namespace}-tts-operator`;

beforeAll(async () => {
  house = await OperatorHouse.open();
  const { stdout } = await promisify(execFile)(join(address.binDirectory, "helm"), [
    ...["template", "op", chart, "--namespace", house.namespace, "--kube-version", "1.36.3"],
    ...["--set", `fullnameOverride=${house.namespace}-tts-operator`],
    ...["--show-only", "templates/writes-policy.yaml"],
  ]);
  policies = stdout;
  await kubectlOrThrow(address, ["apply", "-f", "-"], policies);
  await house.ready();
  await eventually("the policy is active", async () => {
    const { code } = await asOperator("create", secret({ metadata: { name: "another" } }));
    return code !== 0;
  });
});

afterAll(async () => {
  await kubectlOrThrow(address, ["delete", "-f", "-"], policies);
  await house[Symbol.asyncDispose]();
});

const labels = { "app.kubernetes.io/managed-by": "tts-operator", "tts.svc.dev/deployment": "other" };
const owner = (more: object = {}) => ({
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsDeployment",
  name: "other",
  uid: "00000000-0000-0000-0000-000000000001",
  controller: true,
  ...more,
});

/** Returns a Secret as the operator writes it, with these changes. */
function secret({ metadata = {}, ...more }: { metadata?: object; [field: string]: unknown } = {}): object {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "other-token", labels, ownerReferences: [owner()], ...metadata },
    data: { token: "YQ==", accepted: "YQ==" },
    ...more,
  };
}

const actions = {
  create: ["create"],
  // The operator may patch Secrets, and has no right to update them.
  change: ["apply", "--server-side", "--force-conflicts", "--field-manager=tts-operator"],
} as const;

/** Sends the object with the rights of the operator, without storing it. */
function asOperator(action: keyof typeof actions, object: object) {
  const flags = ["-n", house.namespace, "--as", account(), "--dry-run=server", "-f", "-"];
  return kubectl(address, [...actions[action], ...flags], JSON.stringify(object));
}

const createAsAdmin = (object: object) =>
  kubectlOrThrow(
    address,
    ["-n", house.namespace, "apply", "--server-side", "-f", "-"],
    JSON.stringify(object),
  );

describe("the policy for the operator's Secrets", () => {
  it("allows the Secret that the operator writes", async () => {
    expect(await asOperator("create", secret())).toMatchObject({ code: 0 });
    await house.kubectl("annotate", "ttsd/demo", "tts.svc.dev/rotate-token=now");
    const accepted = async () =>
      Buffer.from(
        ((await house.mustGet("Secret", "demo-token")).data as Record<string, string>).accepted ?? "",
        "base64",
      ).toString();
    await house.until(async () => (await accepted()).includes("\n"), "the rotation of the token");
  });

  it("lets the operator repair its Secret after a change of labels, entries and the token", async () => {
    const own = async () => house.mustGet("Secret", "demo-token");
    const before = await own();
    const changes = {
      metadata: { labels: { "app.kubernetes.io/managed-by": null, "tts.svc.dev/deployment": null } },
      data: { token: "eA==", more: "YQ==" },
    };
    await house.kubectl("patch", "secret", "demo-token", "--type=merge", "-p", JSON.stringify(changes));
    await house.until(async () => {
      const { metadata, data } = await own();
      const { token, accepted } = data as Record<string, string>;
      const isKept = token === (before.data as Record<string, string>).token && accepted !== undefined;
      return isKept && metadata.labels?.["tts.svc.dev/deployment"] === "demo";
    }, "the repaired Secret");
    expect(await house.condition("Ready")).toMatch(/^True/);
  });

  it.each<[string, object]>([
    [
      "a token of a ServiceAccount",
      secret({
        type: "kubernetes.io/service-account-token",
        metadata: { annotations: { "kubernetes.io/service-account.name": "default" } },
        data: undefined,
      }),
    ],
    ["another type", secret({ type: "kubernetes.io/tls", data: { "tls.crt": "YQ==", "tls.key": "YQ==" } })],
    ["another name", secret({ metadata: { name: "other-license" } })],
    ["no labels", secret({ metadata: { labels: {} } })],
    [
      "the label of another manager",
      secret({ metadata: { labels: { ...labels, "app.kubernetes.io/managed-by": "Helm" } } }),
    ],
    ["no owner", secret({ metadata: { ownerReferences: [] } })],
    [
      "an owner that is not the controller",
      secret({ metadata: { ownerReferences: [owner({ controller: false })] } }),
    ],
    [
      "an owner of another kind",
      secret({ metadata: { ownerReferences: [owner({ apiVersion: "v1", kind: "Pod" })] } }),
    ],
    ["an owner with another name", secret({ metadata: { ownerReferences: [owner({ name: "demo" })] } })],
    ["another entry", secret({ data: { token: "YQ==", "license.jwt": "YQ==" } })],
  ])("rejects a Secret with %s", async (_what, object) => {
    const { code, stderr } = await asOperator("create", object);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(
      /ValidatingAdmissionPolicy .*-writes-.* denied request: The operator (writes|changes) only/,
    );
  });

  it("rejects a change of a Secret that the operator did not create, also with the labels and the owner", async () => {
    for (const [name, metadata] of [
      ["license", {}],
      ["other-token", { labels: { app: "other" } }],
    ] as const) {
      const foreign = {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name, ...metadata },
        data: { token: "YQ==" },
      };
      if (name !== "license") await createAsAdmin(foreign);
      const taken = secret({ metadata: { name, labels, ownerReferences: [owner()] } });
      const { code, stderr } = await asOperator("change", taken);
      expect(code).not.toBe(0);
      expect(stderr).toContain("The operator");
    }
  });

  it("does not affect other users", async () => {
    const plain: KubernetesObject = { apiVersion: "v1", kind: "Secret", metadata: { name: "plain" } };
    await createAsAdmin({ ...plain, type: "Opaque", data: { password: "YQ==" } });
  });
});
