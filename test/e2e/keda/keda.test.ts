/**
 * Tests pools that KEDA scales: repeatedly to and from zero, with a change of the provider, and with long
 * names.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../../support/cluster/deployed.ts";
import { installKeda, kedaFollows, kedaModel } from "../../support/cluster/keda.ts";
import { ttsDeployment, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const cluster = inject("cluster");
const name = "elastic";
const world = new World(cluster, "keda");
const { kubectl } = world;
const deployed = new Deployed(world, name);
const short = { text: "Good morning, everybody.", speaker: "alan", modelId: "mist" };
const fromZero = { minReplicas: 0, maxReplicas: 2 };
const fromOne = { minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 3 } };

let removeKeda: (() => Promise<void>) | undefined;

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error("the KEDA image exists only for the local cluster: unset KUBECONFIG to run this test");
  ({ remove: removeKeda } = await installKeda());
  await world.openWith(name, { models: [kedaModel(fromZero)] });
});

afterAll(async () => {
  await world.close();
  await removeKeda?.();
});

describe("a pool that KEDA scales to zero", () => {
  it("starts a replica for a request and scales to zero again, three times", async () => {
    await kedaFollows(world, name);
    const times: number[] = [];
    for (let round = 0; round < 3; round++) {
      const { status, firstAudioMs } = await world.timeFirstAudio(name, short);
      expect(status).toBe(200);
      times.push(firstAudioMs);
      await eventually("the pool to scale to zero", async () => (await deployed.pods("mist")).length === 0);
    }
    console.info(`from zero: first audio after ${times.join(", ")} ms`);
  });
});

describe("a change of the scaling provider", () => {
  it("from HPA to KEDA deletes the HorizontalPodAutoscaler, because KEDA rejects a second scaler", async () => {
    const pool = `${name}-mist`;
    await deployed.setModels(kedaModel({ ...fromOne, provider: "HPA" }));
    await eventually(
      "the operator's HorizontalPodAutoscaler",
      async () => (await scalers()).join() === `hpa/${pool}`,
    );
    await deployed.setModels(kedaModel(fromOne));
    await eventually(
      "KEDA's scaler",
      async () => (await scalers()).join() === `hpa/keda-hpa-${pool},so/${pool}`,
      { seen: async () => [await scalers(), (await world.deployment(name))?.status?.conditions] },
    );
    await kedaFollows(world, name);
    await eventually("one replica", async () => (await deployed.pods("mist")).length === 1);
  });

  it("from KEDA to the operator deletes the objects of KEDA", async () => {
    await deployed.setModels(kedaModel({ provider: null, minReplicas: 1, maxReplicas: 2 }));
    await eventually("the deletion of KEDA's objects", async () => (await scalers()).length === 0);
    expect(await deployed.pods("mist")).toHaveLength(1);
  });
});

describe("a TtsDeployment with the longest names", () => {
  const longest = "a".repeat(40);
  const model = { ...kedaModel(fromZero), name: "m".repeat(20) };

  it("is scaled by KEDA, and its condition shows KEDA's message if no API pod responds", async () => {
    const nowhere = { spec: { nodeSelector: { "svc-tts.local/no": "such-node" } } };
    const absent = ttsDeployment(longest, { models: [model] }) as { spec: { api: object } };
    absent.spec.api = { ...absent.spec.api, replicas: 1, podTemplate: nowhere };
    await kubectl.apply(absent);
    const { reason, message } = await world.condition(longest, "ScalingReady", "False", /KEDA|Triggers/);
    console.info(`without an API pod: ${reason}: ${message}`);
    absent.spec.api = { ...absent.spec.api, podTemplate: {} };
    await kubectl.apply(absent);
    await world.condition(longest, "ScalingReady", "True");
  });
});

/** Returns the HorizontalPodAutoscalers and ScaledObjects of the namespace. */
async function scalers(): Promise<string[]> {
  const hpas = await kubectl.list("hpa");
  const scaledObjects = await kubectl.list("scaledobjects");
  return [
    ...hpas.map(({ metadata }) => `hpa/${metadata.name}`),
    ...scaledObjects.map(({ metadata }) => `so/${metadata.name}`),
  ].sort();
}
