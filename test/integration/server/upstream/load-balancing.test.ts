import { afterEach, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  type Call,
  type ScriptedModel,
  speakTone,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";

let api: TestApi | undefined;
const models: ScriptedModel[] = [];

afterEach(async () => {
  await api?.stop();
  for (const model of models.splice(0)) await model.close();
});

/**
 * Starts an API tier with replicas of one model. Each replica has its own pool, and all pools have the same
 * weight.
 */
async function start(scripts: readonly ScriptedModel["script"][]): Promise<TestApi> {
  for (const script of scripts) models.push(await startScriptedModel(script));
  const routes = models.map(({ url }, i) => ({ pool: `p${i}`, service: url, weight: 100, idle: false }));
  api = await startTestApi({ arcana: routes });
  return api;
}

const speak = (to: TestApi) =>
  to.post({ speaker: "luna", modelId: "arcana", text: "Hello." }, { accept: "audio/pcm" });
const mayQueue = ({ headers }: Call) => headers["x-svc-no-queue"] === undefined;
const full = (call: Call) => call.refuse(503, { code: "saturated", detail: "full" }, { "retry-after": "7" });
const calls = () => models.map((model) => model.calls.length);
const queued = () => models.flatMap((model) => model.calls.filter(mayQueue)).length;

it("a request never waits at a saturated replica while another replica has capacity", async () => {
  const to = await start([full, full, speakTone(0.1)]);
  for (let i = 0; i < 20; i++) expect((await speak(to)).status).toBe(200);
  expect(models[2]?.calls).toHaveLength(20);
  // The API tier tried saturated replicas too.
  expect((calls()[0] ?? 0) + (calls()[1] ?? 0)).toBeGreaterThan(0);
  expect(queued()).toBe(0);
});

it("a request waits in the queue of a replica after every replica has reported that it is saturated", async () => {
  const serveQueued = (call: Call) => (mayQueue(call) ? speakTone(0.1)(call) : full(call));
  const to = await start([serveQueued, serveQueued]);
  expect((await speak(to)).status).toBe(200);
  expect(calls().toSorted()).toEqual([1, 2]);
  expect(queued()).toBe(1);
});

it("a request to the only replica may wait in its queue immediately", async () => {
  const to = await start([speakTone(0.1)]);
  expect((await speak(to)).status).toBe(200);
  expect(calls()).toEqual([1]);
  expect(queued()).toBe(1);
});

it("a text that crashes engines is tried on at most two replicas", async () => {
  const broken = (call: Call) => call.refuse(502, { code: "model_failed", detail: "broken" });
  const to = await start([broken, broken, broken, broken]);
  const response = await speak(to);
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ code: "model_failed" });
  expect(calls().reduce((sum, count) => sum + count, 0)).toBe(2);
});
