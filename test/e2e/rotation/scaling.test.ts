/**
 * Tests pools with the built-in scaler and real pods: from zero and back, up and down, without an interrupted
 * stream.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../../support/cluster/deployed.ts";
import { mist, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const name = "elastic";
const world = new World(inject("cluster"), "scaling");
const { kubectl } = world;
const deployed = new Deployed(world, name);
const short = { text: "Good morning, everybody.", speaker: "alan", modelId: "mist" };
/** Several seconds of speech, so that streams overlap also on a fast machine. */
const long = {
  ...short,
  text: "We will meet at the station tomorrow morning at nine, and then we walk along the river. "
    .repeat(5)
    .trim(),
};
/** Scales down within seconds, so that the test does not wait for minutes. */
const behavior = {
  scaleDown: { stabilizationWindowSeconds: 8, policies: [{ type: "Percent", value: 100, periodSeconds: 1 }] },
};

beforeAll(() => world.openWith(name, { models: [elastic({ minReplicas: 0, maxReplicas: 2 })] }));
afterAll(() => world.close());

describe("a pool at zero", () => {
  it("is ready without a pod", async () => {
    expect(await deployed.pods("mist")).toEqual([]);
    await eventually(
      "the API tier to report the pool as reachable",
      async () => (await world.health(name)).modelReachable === true,
    );
    expect(await world.health(name)).toMatchObject({ apiStatus: "ok", modelReachable: true });
  });

  it("holds the first request until a replica is ready", async () => {
    const { status, firstAudioMs } = await world.timeFirstAudio(name, short);
    console.info(`from zero: first audio after ${firstAudioMs} ms`);
    expect(status).toBe(200);
    const warm = await world.timeFirstAudio(name, short);
    console.info(`warm: first audio after ${warm.firstAudioMs} ms`);
    expect(warm).toMatchObject({ status: 200 });
  });

  it("scales to zero when requests end, and starts again", async () => {
    await eventually("the pool to scale to zero", async () => (await deployed.pods("mist")).length === 0);
    expect(await world.timeFirstAudio(name, short)).toMatchObject({ status: 200 });
  });
});

describe("a pool under load", () => {
  beforeAll(async () => {
    await deployed.setModels(elastic({ minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 3 } }));
    await eventually("one ready replica", async () => (await deployed.readyReplicas("mist")) === 1);
  });

  it("scales from one replica to two, and every request succeeds", async () => {
    const upUnderLoad = async () => {
      await eventually("two ready replicas", async () => (await deployed.readyReplicas("mist")) === 2);
      await eventually("the streams in the status", async () => (await used()) > 0);
    };
    await deployed.uncut("1 to 2", long, upUnderLoad, { streams: 6 });
  });

  it("scales down to one replica when requests end", async () => {
    await eventually("one replica", async () => (await deployed.everyPod("mist")).length === 1);
    await world.condition(name, "ScalingReady", "True");
  });

  it("scales down under 16 streams without interrupting one", async () => {
    await deployed.uncut("2 to 1", long, async () => {
      await eventually("two ready replicas", async () => (await deployed.readyReplicas("mist")) === 2);
      await deployed.setModels(elastic({ minReplicas: 1, maxReplicas: 1, target: { streamsPerReplica: 3 } }));
      await eventually("one pod", async () => (await deployed.everyPod("mist")).length === 1);
    });
  });

  it("records an event for each change of the number of replicas", async () => {
    const events = await kubectl.list("events.events.k8s.io");
    const notes = events.flatMap((event) => noteOf(event, "Scaled"));
    expect(notes).toContain("The operator scaled the pool from 0 to 1 replicas to follow the demand.");
    expect(notes).toContain("The operator scaled the pool from 2 to 1 replicas to follow the demand.");
  });
});

/**
 * Returns the note of an event with the reason. The event of events.k8s.io has both fields at its top level.
 */
function noteOf(event: object, expectedReason: string): string[] {
  const { reason, note } = event as { reason?: string; note?: string };
  return reason === expectedReason && note !== undefined ? [note] : [];
}

function elastic(scaling: object): object {
  const { replicas: _, ...model } = mist() as { replicas: number };
  return { ...model, scaling: { behavior, ...scaling } };
}

async function used(): Promise<number> {
  return (await world.deployment(name))?.status?.models[0]?.capacity.used ?? 0;
}
