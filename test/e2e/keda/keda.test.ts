/** Pools that KEDA itself scales, with real pods: from zero and back, up and down, and what is told when it cannot. */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { installKeda } from "../../support/keda.ts";
import { condition, type KubeObject } from "../../support/real-cluster.ts";
import { mist, ttsDeployment, World } from "../../support/world.ts";

const cluster = inject("cluster");
const name = "elastic";
const pool = `${name}-mist`;
const world = new World({ cluster, namespace: "e2e-keda" });
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
const fromZero = { provider: "KEDA", minReplicas: 0, maxReplicas: 2 };
const fromOne = { provider: "KEDA", minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 3 } };

let removeKeda: (() => Promise<void>) | undefined;

beforeAll(async () => {
  if (!cluster.isLocal) throw new Error("KEDA's image is made for the local cluster: unset KUBECONFIG");
  ({ remove: removeKeda } = await installKeda());
  await world.open();
  await world.license(30);
  await kubectl.apply(ttsDeployment(name, { models: [elastic(fromZero)] }));
  await world.condition(name, "Ready", "True");
}, 3_600_000);

afterAll(async () => {
  await world.close();
  await removeKeda?.();
});

describe("a pool that KEDA has at zero", () => {
  it("is taken by KEDA, and said to follow", async () => {
    await following();
    expect(await pods()).toEqual([]);
  });

  it("holds the first request until a replica is warm, and answers it, time and again", async () => {
    const times: number[] = [];
    for (let round = 0; round < 3; round++) {
      const { status, firstAudioMs } = await world.timeFirstAudio(name, short);
      expect(status).toBe(200);
      times.push(firstAudioMs);
      await eventually("the pool to sleep", async () => (await pods()).length === 0);
    }
    console.info(`from zero: first audio after ${times.join(", ")} ms`);
  }, 400_000);
});

describe("a pool that KEDA has under load", () => {
  beforeAll(async () => {
    await setScaling(fromOne);
    await eventually("one ready replica", async () => (await ready()) === 1);
    await following();
  });

  it("goes from one replica to two and back to one, and every request succeeds", async () => {
    const beganMs = Date.now();
    const load = world.load(name, long, { streams: 6, limitSeconds: 240 });
    await eventually("two wanted", async () => (await wanted()) === 2);
    const wantedMs = Date.now() - beganMs;
    await eventually("two ready replicas", async () => (await ready()) === 2);
    const readyMs = Date.now() - beganMs;
    const report = await load.stop();
    const overMs = Date.now();
    await eventually("one replica", async () => (await pods()).length === 1);
    console.info(
      `1 to 2: wanted after ${wantedMs} ms, ready after ${readyMs} ms, ${report.ok} requests answered, ` +
        `${report.failures.length} failed; back to 1 after ${Date.now() - overMs} ms`,
    );
    expect(report.failures).toEqual([]);
    expect(report.ok).toBeGreaterThan(6);
    await following();
  }, 400_000);

  it("is left alone at rest", async () => {
    await eventually(
      "15 s without a write",
      async () => {
        const before = await versions();
        await new Promise((resolve) => setTimeout(resolve, 15_000));
        return isDeepStrictEqual(await versions(), before);
      },
      { seen: versions },
    );
  });
});

describe("a change of who scales", () => {
  it("from a HorizontalPodAutoscaler of ours to KEDA, which refuses to be the second", async () => {
    await setScaling({ ...fromOne, provider: "HPA" });
    await eventually("our HorizontalPodAutoscaler", async () => (await scalers()).join() === `hpa/${pool}`);
    await setScaling(fromOne);
    await eventually("KEDA's", async () => (await scalers()).join() === `hpa/keda-hpa-${pool},so/${pool}`, {
      seen: async () => [await scalers(), (await world.deployment(name))?.status?.conditions],
    });
    await following();
    expect(await pods()).toHaveLength(1);
  });

  it("from KEDA to the operator leaves nothing of KEDA's", async () => {
    await setScaling({ minReplicas: 1, maxReplicas: 2 });
    await eventually("no other scaler", async () => (await scalers()).length === 0);
    expect(await pods()).toHaveLength(1);
  });
});

describe("a TtsDeployment with the longest names", () => {
  const longest = "a".repeat(40);
  const model = { ...elastic(fromZero), name: "m".repeat(20) };

  afterAll(async () => {
    await kubectl.do("delete", "ttsd", longest, "--timeout=60s");
  });

  it("is scaled by KEDA too, and KEDA's word is told where no API pod answers", async () => {
    const nowhere = { spec: { nodeSelector: { "svc-tts.local/no": "such-node" } } };
    const absent = ttsDeployment(longest, { models: [model] }) as { spec: { api: object } };
    absent.spec.api = { ...absent.spec.api, replicas: 1, podTemplate: nowhere };
    await kubectl.apply(absent);
    const { reason, message } = await world.condition(longest, "ScalingReady", "False", /KEDA|Triggers/);
    console.info(`without an API pod: ${reason}: ${message}`);
    absent.spec.api = { ...absent.spec.api, podTemplate: {} };
    await kubectl.apply(absent);
    await world.condition(longest, "ScalingReady", "True");
  }, 400_000);
});

function elastic(scaling: object): object {
  const { replicas: _, ...model } = mist() as { replicas: number };
  return { ...model, scaling: { behavior, ...scaling } };
}

async function setScaling(scaling: object): Promise<void> {
  const models = [elastic(scaling)];
  await kubectl.do("patch", "ttsd", name, "--type=merge", "--patch", JSON.stringify({ spec: { models } }));
}

/** Ready by KEDA's word, and by ours. */
async function following(): Promise<void> {
  await eventually(
    "KEDA to take the ScaledObject",
    async () => condition(await kubectl.get("scaledobject", pool), "Ready")?.status === "True",
    { seen: async () => (await kubectl.get("scaledobject", pool))?.status },
  );
  expect(await world.condition(name, "ScalingReady", "True")).toMatchObject({ reason: "Following" });
}

async function pods(): Promise<string[]> {
  const found = await kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=mist`);
  return found.map((pod) => pod.metadata.name);
}

const poolNow = (): Promise<KubeObject | undefined> => kubectl.get("ttsmp", pool);

async function ready(): Promise<number> {
  return (await poolNow())?.status?.readyReplicas ?? 0;
}

async function wanted(): Promise<number> {
  return (await poolNow())?.spec?.replicas ?? 0;
}

/** Who scales the pool. */
async function scalers(): Promise<string[]> {
  const hpas = await kubectl.list("hpa");
  const scaledObjects = await kubectl.list("scaledobjects");
  return [
    ...hpas.map(({ metadata }) => `hpa/${metadata.name}`),
    ...scaledObjects.map(({ metadata }) => `so/${metadata.name}`),
  ].sort();
}

/** What we write: KEDA and the cluster write status of their own. */
async function versions(): Promise<object> {
  const scaledObject = await kubectl.get("scaledobject", pool);
  return {
    pool: (await poolNow())?.metadata.resourceVersion,
    generation: scaledObject?.metadata.generation,
    deployment: (await world.deployment(name))?.metadata.resourceVersion,
  };
}
