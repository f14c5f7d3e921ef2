/** Tests that a rollout, a drain and a scale-down interrupt no stream. */
import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { Deployed } from "../support/cluster/deployed.ts";
import { run } from "../support/cluster/real-cluster.ts";
import { mist, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";

const name = "roll";
const world = new World(inject("cluster"), "rollout");
const { kubectl } = world;
const deployed = new Deployed(world, name);
/** The highest rate, so that sockets buffer little audio that the client has not read. */
const samplingRate = 44_100;
const text = "Every one of these words is heard to its end, whatever happens to the pod that speaks it.";
const body = { text, speaker: "alan", modelId: "mist", samplingRate };

beforeAll(() => world.openWith(name, { models: [mist({ replicas: 2 })] }));
afterAll(() => world.close());

describe("16 streams are not interrupted", () => {
  it("while a pool is rolled out", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("rolling update", body, async () => {
      const restart = `tts.svc.dev/restart=${Date.now()}`;
      await kubectl.do("annotate", "ttsmp", `${name}-mist`, "--overwrite", restart);
      await deployed.renewed("mist", before, 2);
    });
  });

  it("while the pods of a pool are evicted one after the other, within the PodDisruptionBudget", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("drain", body, async () => {
      for (const pod of before) {
        const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod } };
        const path = `/api/v1/namespaces/${kubectl.namespace}/pods/${pod}/eviction`;
        await eventually(`the eviction of ${pod}`, async () => {
          const ran = await run("kubectl", ["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
          if (ran.code !== 0 && !ran.stderr.includes("disruption budget")) throw new Error(ran.stderr);
          return ran.code === 0;
        });
      }
      await deployed.renewed("mist", before, 2);
    });
  });

  it("while a pool is scaled down", async () => {
    await deployed.uncut("scale-down", body, async () => {
      await deployed.setModels(mist({ replicas: 1 }));
      await eventually("one pod of the pool", async () => (await deployed.everyPod("mist")).length === 1);
    });
    await deployed.setModels(mist({ replicas: 2 }));
    await world.condition(name, "Ready", "True");
  });
});
