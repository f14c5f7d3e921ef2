import { afterEach, expect, it } from "vitest";
import { readCanaryMetrics } from "../../../../operator/rollout/canary-metrics.ts";
import { eventually } from "../../../support/eventually.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

/**
 * Tests the metrics of pools in the API tier, which the operator reads to analyse canaries.
 */

let api: TestApi;
let models: ScriptedModel[] = [];

afterEach(async () => {
  await api.stop();
  for (const model of models) await model.close();
  models = [];
});

async function model(script: ScriptedModel["script"]): Promise<ScriptedModel> {
  const started = await startScriptedModel(script);
  models.push(started);
  return started;
}

const speak = async () => {
  const body = { text: "Good morning.", speaker: "luna", modelId: "arcana" };
  const answer = await api.post(body, { accept: "audio/pcm" });
  return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
};

const metrics = async () => (await fetch(`${api.url}/metrics`)).text();

it("failures of a canary are counted for the canary, while another pool serves every request", async () => {
  const good = await model(speakTone(0.2));
  const bad = await model((call) => call.refuse(502, { code: "model_failed", detail: "broken" }));
  api = await startTestApi({
    arcana: [
      { pool: "voice", service: good.url, weight: 50, idle: false },
      { pool: "voice-canary", service: bad.url, weight: 50, idle: false, revision: "r1" },
    ],
  });
  const answers = await Promise.all(Array.from({ length: 40 }, speak));
  expect(answers.every(({ status, bytes }) => status === 200 && bytes === 0.2 * 24_000 * 2)).toBe(true);
  const failed = bad.calls.length;
  expect(failed).toBeGreaterThan(5);
  await eventually("the metrics of all streams", async () => {
    const canary = readCanaryMetrics([await metrics()], { pool: "voice-canary", revision: "r1" });
    const stable = readCanaryMetrics([await metrics()], { pool: "voice", revision: "" });
    return (
      canary.streams === failed && canary.failed === failed && stable.streams === 40 && stable.failed === 0
    );
  });
});

it("the real-time factor is the one that the replica reports, and a saturated replica is not counted as a failure", async () => {
  const replica = await model(async (call) => {
    if (replica.calls.length === 1) return call.refuse(503, { code: "saturated", detail: "full" });
    await call.head(24_000);
    await call.tone(24_000, 24_000);
    return call.send({ kind: "end", samples: 24_000, workMs: 250 }).then(() => call.close());
  });
  api = await startTestApi({
    arcana: [{ pool: "voice", service: replica.url, weight: 100, idle: false, revision: "r2" }],
  });
  expect((await speak()).status).toBe(503);
  expect((await speak()).status).toBe(200);
  await eventually("the metrics of the stream", async () => (await metrics()).includes('outcome="ok"} 1'));
  const text = await metrics();
  const figures = readCanaryMetrics([text], { pool: "voice", revision: "r2" });
  expect(figures).toMatchObject({ streams: 1, failed: 0 });
  expect(text).toContain('svc_tts_pool_spoken_total{pool="voice",revision="r2",outcome="refused"} 1');
  expect(figures.realTimeFactor.get(0.2)).toBe(0);
  expect(figures.realTimeFactor.get(0.3)).toBe(1);
  expect(figures.firstAudio.get(Number.POSITIVE_INFINITY)).toBe(1);
});
