/** Tests a rollout without a free device: the operator drains one old pod before each new pod. */
import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { Deployed } from "../support/cluster/deployed.ts";
import { Kubectl } from "../support/cluster/real-cluster.ts";
import { arcana, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";

const name = "trade";
const world = new World(inject("cluster"), "trade");
const { kubectl } = world;
const deployed = new Deployed(world, name);
/** The highest rate, so that sockets buffer little audio that the client has not read. */
const samplingRate = 44_100;
const text = "Every one of these words is heard to its end, whatever happens to the pod that speaks it.";
const body = { text, speaker: "luna", modelId: "arcana", samplingRate };
/**
 * A device of this test. The node offers two of these devices (Kubernetes, "Advertise Extended Resources for
 * a Node").
 */
const resourceName = `${kubectl.namespace}.example/gpu`;
const nodes = new Kubectl("default");
const rollout = { whenFull: "Trade", maxSurge: 1, maxUnavailable: 0 };
const fullModel = (more: object = {}) =>
  arcana({ replicas: 2, accelerator: { count: 1, resourceName }, rollout, ...more });
let node = "";

async function patchNode(operation: object): Promise<void> {
  const path = `/status/capacity/${resourceName.replace("/", "~1")}`;
  const patch = JSON.stringify([{ path, ...operation }]);
  await nodes.do("patch", "node", node, "--subresource=status", "--type=json", "-p", patch);
}

beforeAll(async () => {
  [node = ""] = (await nodes.list("nodes")).map(({ metadata }) => metadata.name);
  await patchNode({ op: "add", value: "2" });
  await world.openWith(name, { models: [fullModel()] });
});
afterAll(() => Promise.all([world.close(), patchNode({ op: "remove" })]));

describe("a rollout without a free device", () => {
  it("drains one old pod for each new pod without interrupting a stream", async () => {
    const before = await deployed.pods("arcana");
    const roll = async () => {
      await deployed.setModels(fullModel({ env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }));
      await deployed.renewed("arcana", before, 2);
    };
    await deployed.uncut("rollout with every device taken", body, roll, { streams: 4, listening: true });
    await eventually("the operator to restore maxUnavailable to 0 after the trade", async () => {
      const live = await kubectl.get("deployment", `${name}-arcana`);
      return live?.spec.strategy.rollingUpdate.maxUnavailable === 0;
    });
  });
});
