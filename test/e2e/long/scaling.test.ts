/** Pools that scale themselves, with real pods: from zero and back, up and down, and no stream is cut on the way. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { mist, ttsDeployment, World } from "../../support/world.ts";

const name = "elastic";
const world = new World({ cluster: inject("cluster"), namespace: "e2e-scaling" });
const { kubectl } = world;
const short = { text: "Good morning, everybody.", speaker: "alan", modelId: "mist" };
/** Several seconds of speech: streams overlap, also on a machine that speaks fast. */
const long = {
  ...short,
  text: "We will meet at the station tomorrow morning at nine, and then we walk along the river. "
    .repeat(5)
    .trim(),
};
/** Down within seconds, so that the test need not wait for minutes. */
const behavior = {
  scaleDown: { stabilizationWindowSeconds: 8, policies: [{ type: "Percent", value: 100, periodSeconds: 1 }] },
};

beforeAll(async () => {
  await world.open();
  await world.license(30);
  await kubectl.apply(ttsDeployment(name, { models: [elastic({ minReplicas: 0, maxReplicas: 2 })] }));
  await world.condition(name, "Ready", "True");
});

afterAll(() => world.close());

describe("a pool at zero", () => {
  it("is ready and reachable without a pod", async () => {
    expect(await pods()).toEqual([]);
    await eventually("the API tier to know", async () => (await world.health(name)).modelReachable === true);
    expect(await world.health(name)).toMatchObject({ apiStatus: "ok", modelReachable: true });
  });

  it("holds the first request until a replica is warm, and answers it", async () => {
    const { status, firstAudioMs } = await world.timeFirstAudio(name, short);
    console.info(`from zero: first audio after ${firstAudioMs} ms`);
    expect(status).toBe(200);
    expect(firstAudioMs).toBeLessThan(60_000);
    const warm = await world.timeFirstAudio(name, short);
    console.info(`warm: first audio after ${warm.firstAudioMs} ms`);
    expect(warm).toMatchObject({ status: 200 });
  });

  it("sleeps again once nobody calls, and wakes once more", async () => {
    await eventually("the pool to sleep", async () => (await pods()).length === 0);
    expect(await world.timeFirstAudio(name, short)).toMatchObject({ status: 200 });
  });
});

describe("a pool under load", () => {
  beforeAll(async () => {
    await setScaling({ minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 3 } });
    await eventually("one ready replica", async () => (await ready()) === 1);
  });

  it("goes from one replica to two and back to one, and every request succeeds", async () => {
    const load = world.load(name, long, { streams: 6 });
    await eventually("two ready replicas", async () => (await ready()) === 2);
    await eventually("the streams in the status", async () => (await used()) > 0);
    const report = await load.stop();
    console.info(`1 to 2: ${report.ok} requests answered, ${report.failures.length} failed`);
    await eventually("one replica", async () => (await pods()).length === 1);
    expect(report.failures).toEqual([]);
    expect(report.ok).toBeGreaterThan(6);
    await world.condition(name, "ScalingReady", "True");
  });

  it("shrinks under 16 live streams and cuts none", async () => {
    const load = world.load(name, long, { streams: 16 });
    await eventually("two ready replicas", async () => (await ready()) === 2);
    await setScaling({ minReplicas: 1, maxReplicas: 1, target: { streamsPerReplica: 3 } });
    await eventually("one pod", async () => (await pods()).length === 1);
    const report = await load.stop();
    console.info(`2 to 1 under 16 streams: ${report.ok} requests answered, ${report.failures.length} failed`);
    expect(report.failures).toEqual([]);
    expect(report.ok).toBeGreaterThan(16);
  });

  it("tells of each step in an event", async () => {
    const events = await kubectl.list("events.events.k8s.io");
    const notes = events.flatMap((event) => noteOf(event, "Scaled"));
    expect(notes).toContain("From 0 to 1 replicas, as callers ask for.");
    expect(notes).toContain("From 2 to 1 replicas, as callers ask for.");
  });
});

/** Events have their fields at the top. */
function noteOf(event: object, wanted: string): string[] {
  const { reason, note } = event as { reason?: string; note?: string };
  return reason === wanted && note !== undefined ? [note] : [];
}

function elastic(scaling: object): object {
  const { replicas: _, ...model } = mist() as { replicas: number };
  return { ...model, scaling: { behavior, ...scaling } };
}

async function setScaling(scaling: object): Promise<void> {
  const patch = JSON.stringify({ spec: { models: [elastic(scaling)] } });
  await kubectl.do("patch", "ttsd", name, "--type=merge", "--patch", patch);
}

async function pods(): Promise<string[]> {
  const found = await kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=mist`);
  return found.map((pod) => pod.metadata.name);
}

async function ready(): Promise<number> {
  return (await kubectl.get("ttsmp", `${name}-mist`))?.status?.readyReplicas ?? 0;
}

async function used(): Promise<number> {
  return (await world.deployment(name))?.status?.models[0]?.capacity.used ?? 0;
}
