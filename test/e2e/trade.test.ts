/** A rollout without a free device drains one pod for each new one. */
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
/** Two fake devices of the node, which no other test uses (Kubernetes, "Advertise Extended Resources for a Node"). */
const resourceName = `${kubectl.namespace}.example/gpu`;
const nodes = new Kubectl("default");
const rollout = { whenFull: "Trade", maxSurge: 1, maxUnavailable: 0 };
const traded = (more: object = {}) =>
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
  await world.openWith(name, { models: [traded()] });
});
afterAll(() => Promise.all([world.close(), patchNode({ op: "remove" })]));

describe("a rollout without a free device", () => {
  it("trades one pod for the next without interrupting a stream", async () => {
    const before = await deployed.pods("arcana");
    const roll = async () => {
      await deployed.setModels(traded({ env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }));
      await deployed.renewed("arcana", before, 2);
    };
    await deployed.uncut("rollout with every device taken", body, roll, { streams: 4, listening: true });
    await eventually("the trade to be over", async () => {
      const live = await kubectl.get("deployment", `${name}-arcana`);
      return live?.spec.strategy.rollingUpdate.maxUnavailable === 0;
    });
  });
});
