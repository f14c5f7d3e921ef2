/**
 * Tests a pool that KEDA scales, with real pods: from zero, up and down under load, without a failed request.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../../support/cluster/deployed.ts";
import { installKeda, kedaFollows, kedaModel } from "../../support/cluster/keda.ts";
import { World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const cluster = inject("cluster");
const name = "elastic";
const world = new World(cluster, "keda");
const deployed = new Deployed(world, name);
const short = { text: "Good morning, everybody.", speaker: "alan", modelId: "mist" };
/** Several seconds of speech, so that streams overlap also on a fast machine. */
const long = {
  ...short,
  text: "We will meet at the station tomorrow morning at nine, and then we walk along the river. "
    .repeat(5)
    .trim(),
};

let removeKeda: (() => Promise<void>) | undefined;

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error("the KEDA image exists only for the local cluster: unset KUBECONFIG to run this test");
  ({ remove: removeKeda } = await installKeda());
  await world.openWith(name, { models: [kedaModel({ minReplicas: 0, maxReplicas: 2 })] });
});

afterAll(async () => {
  await world.close();
  await removeKeda?.();
});

describe("a pool that KEDA scales", () => {
  it("is scaled to zero by KEDA, and its condition has the reason Following", async () => {
    await kedaFollows(world, name);
    expect(await deployed.pods("mist")).toEqual([]);
  });

  it("holds the first request until a replica is ready", async () => {
    const { status, firstAudioMs } = await world.timeFirstAudio(name, short);
    console.info(`from zero: first audio after ${firstAudioMs} ms`);
    expect(status).toBe(200);
  });

  it("scales to two replicas under load and back to one, and every request succeeds", async () => {
    await deployed.setModels(kedaModel({ minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 3 } }));
    await deployed.uncut(
      "1 to 2 by KEDA",
      long,
      () => eventually("two ready replicas", async () => (await deployed.readyReplicas("mist")) === 2),
      { streams: 6 },
    );
    await eventually("one replica", async () => (await deployed.pods("mist")).length === 1);
    await kedaFollows(world, name);
  });
});
