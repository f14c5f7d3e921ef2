/** Tests that a rollout, a drain and a scale-down interrupt no stream and no context on a WebSocket. */
import { afterAll, beforeAll, describe, inject, it } from "vitest";
import { Deployed } from "../support/cluster/deployed.ts";
import { evictAll, rollOut, scaleDown } from "../support/cluster/disruptions.ts";
import { mist, World } from "../support/cluster/world.ts";

const name = "roll";
const world = new World(inject("cluster"), "rollout");
const deployed = new Deployed(world, name);
/** The highest rate, so that sockets buffer little audio that the client has not read. */
const samplingRate = 44_100;
const text = "Every one of these words is heard to its end, whatever happens to the pod that speaks it.";
const body = { text, speaker: "alan", modelId: "mist", samplingRate };

/** One replica serves all clients after the scale-down. */
const pool = { maxConcurrentStreams: 24 };

beforeAll(() => world.openWith(name, { models: [mist({ ...pool, replicas: 2 })] }));
afterAll(() => world.close());

const clients = { streams: 16, sockets: 4, listening: true };

describe("16 streams and 4 contexts on WebSockets are not interrupted", () => {
  it("while a pool is rolled out", async () => {
    await deployed.uncut("rolling update", body, () => rollOut(world, deployed), clients);
  });

  it("while the pods of a pool are evicted one after the other, within the PodDisruptionBudget", async () => {
    await deployed.uncut("drain", body, () => evictAll(world, deployed), clients);
  });

  it("while a pool is scaled down", async () => {
    await deployed.uncut("scale-down", body, () => scaleDown(deployed, pool), clients);
    await deployed.setModels(mist({ ...pool, replicas: 2 }));
    await world.condition(name, "Ready", "True");
  });
});
