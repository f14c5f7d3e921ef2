import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type ControlPlane,
  type ControlPlaneAddress,
  controlPlane,
} from "../../../support/cluster/control-plane.ts";
import { installCrds, kubectl, kubectlOrThrow } from "../../../support/cluster/kubectl.ts";
import { OperatorHouse } from "../../../support/operator/operator-house.ts";

/**
 * Tests the operator with CRDs of another version. Newer CRDs have fields that the operator does not know,
 * and older CRDs lack fields that it needs.
 */

const spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
const status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
const crds = join(import.meta.dirname, "../../../../crds");
let plane: ControlPlane;
let address: ControlPlaneAddress;
let house: OperatorHouse;

beforeAll(async () => {
  // This file has its own control plane, because CRDs affect the whole cluster.
  plane = await controlPlane({ prepare: installCrds });
  address = plane.address;
});

beforeEach(async () => {
  house = await OperatorHouse.open({}, address);
  await house.putLicense(await house.issuer.issue());
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
  await restore();
});

afterAll(() => plane.stop());

/** Replaces the CRD, because a patch cannot remove an added field. */
async function restore(): Promise<void> {
  const ours = await kubectlOrThrow(address, ["create", "--dry-run=client", "-o", "json", "-f", crds]);
  await kubectlOrThrow(address, ["replace", "-f", "-"], ours);
  await serves("ttsdeployments", (text) => text.includes("internalToken") && !text.includes("shiny"));
}

type Patch = { op: "add" | "remove"; path: string; value?: unknown };

async function patch(crd: "ttsdeployments" | "ttsmodelpools", ...steps: Patch[]): Promise<void> {
  const order = ["patch", "crd", `${crd}.tts.svc.dev`, "--type=json", "-p", JSON.stringify(steps)];
  await kubectlOrThrow(address, order);
}

/**
 * Waits until the API server uses the new schema: creates an object by a dry run, and examines the result.
 */
async function serves(plural: string, isNew: (text: string) => boolean): Promise<void> {
  const metadata = { name: "probe", namespace: house.namespace };
  const content =
    plural === "ttsdeployments"
      ? {
          kind: "TtsDeployment",
          spec: { license: { secretRef: { name: "l" } }, models: [{ name: "m", kind: "mist", shiny: "1" }] },
        }
      : { kind: "TtsModelPool", spec: { deployment: "d", pool: "p", kind: "mist", sharedMemory: "1Gi" } };
  const probe = JSON.stringify({ apiVersion: "tts.svc.dev/v1alpha1", metadata, ...content });
  const args = ["create", "--dry-run=server", "--validate=false", "-o", "json", "-f", "-"];
  await house.until(
    async () => isNew((await kubectl(address, args, probe)).stdout),
    `the schema of ${plural}`,
  );
}

describe("with a CRD that is newer than the operator, the operator", () => {
  it("reports unknown fields, and changes no pod", async () => {
    const shiny = { type: "string" };
    const model = `${spec}/models/items/properties/shiny`;
    await patch(
      "ttsdeployments",
      { op: "add", path: model, value: shiny },
      { op: "add", path: `${spec}/fancy`, value: shiny },
    );
    await serves("ttsdeployments", (text) => text.includes('"shiny"'));
    // The restart opens new watches: a watch from before the change uses the old schema for some time.
    await house.restart();
    await house.ready();
    const { generation } = (await house.workload("demo-mist")).metadata;
    expect(await house.condition("SchemaMatches")).toBe("absent");
    await house.putDeployment({ fancy: "yes" }, [{ name: "mist", kind: "mist", shiny: "very" }]);
    await house.untilCondition(
      "SchemaMatches",
      /^False UnknownFields: .*spec\.fancy, spec\.models\[0\]\.shiny.*Upgrade the operator/,
    );
    await house.untilReady();
    expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
    await house.putDeployment();
    await house.untilCondition("SchemaMatches", /^absent/);
  });
});

describe("with a CRD that is older than the operator, the operator", () => {
  it("reports a missing field that it needs, and changes nothing until the CRD is updated", async () => {
    await house.ready();
    await patch("ttsdeployments", { op: "remove", path: `${spec}/internalToken` });
    await serves("ttsdeployments", (text) => text !== "" && !text.includes("internalToken"));
    // The restart opens new watches: a watch from before the change uses the old schema for some time.
    await house.restart();
    const writes = () =>
      house.proxy.requests.filter(({ method, path }) => method !== "GET" && !/status$|events/.test(path))
        .length;
    await house.idle();
    const before = writes();
    await house.putDeployment({ api: { replicas: 3 } });
    await house.untilCondition("Stalled", /^True CrdMismatch: .*internalToken.*CRDs in this cluster/);
    await house.untilCondition("Ready", /^False CrdMismatch/);
    expect(writes()).toBe(before);
    await restore();
    await house.untilReplicas("demo-api", 3);
    await house.serve("demo-api");
    await house.untilReady();
  });

  it("reports a missing field of the status, and writes the rest of the status", async () => {
    await patch(
      "ttsdeployments",
      { op: "remove", path: `${status}/license/properties/licensee` },
      { op: "remove", path: `${status}/version` },
    );
    const schema = ["get", "--raw", "/openapi/v3/apis/tts.svc.dev/v1alpha1"];
    await house.until(
      async () => !(await kubectlOrThrow(address, schema)).includes('"licensee"'),
      "the schema",
    );
    await house.ready();
    await house.untilCondition(
      "SchemaMatches",
      /^False FieldsLost: .*\.status\.license\.licensee.*Install the CRDs/,
    );
    expect(await house.condition("SchemaMatches")).toContain(".status.version");
    expect((await house.deployment()).status).toMatchObject({
      license: { state: "valid" },
      summary: { models: "1/1" },
    });
    await house.idle();
    const writes = house.proxy.count("write");
    await house.touch("at rest");
    await house.idle();
    expect(house.proxy.count("write")).toBe(writes);
  });

  it("reports CrdMismatch for a missing field of a pool, and keeps the running pods", async () => {
    await house.ready();
    await patch("ttsmodelpools", { op: "remove", path: `${spec}/sharedMemory` });
    await serves("ttsmodelpools", (text) => text !== "" && !text.includes("sharedMemory"));
    // The restart opens new watches: a watch from before the change uses the old schema for some time.
    await house.restart();
    const { generation } = (await house.workload("demo-mist")).metadata;
    await house.putDeployment({}, [{ name: "mist", kind: "mist", sharedMemory: "1Gi" }]);
    await house.untilCondition(
      "Stalled",
      /^True CrdMismatch: TtsModelPool demo-mist cannot be written: its CRD does not have \.spec\.sharedMemory/,
    );
    expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
  });
});
