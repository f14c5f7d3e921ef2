import { afterEach, describe, expect, it } from "vitest";
import type { ApiLoad, PoolLoad } from "../../../../config/contract/load.ts";
import type { Route } from "../../../../config/contract/routing.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { sampleOf, startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  type ScriptedModel,
  speakTone,
  speakUntil,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";

/** Tests a pool that is scaled to zero: requests are held, within limits, until the pool has a replica. */

const words = { text: "Good morning.", speaker: "luna", modelId: "arcana" };
let api: TestApi;
let model: ScriptedModel;
let clock: FakeClock;

const longestMs = 20_000;
/** The server reads the routing file once a second. */
const readMs = 1_000;

afterEach(async () => {
  await api.stop();
  await model.close();
});

const route = (more: Partial<Route>): { arcana: Route[] } => ({
  arcana: [{ pool: "voice", service: model.url, weight: 100, idle: true, wakes: true, ...more }],
});

async function startAtZero(places = 2, more: Partial<Route> = {}): Promise<void> {
  model = await startScriptedModel(speakTone(0.2));
  clock = new FakeClock();
  api = await startTestApi(route(more), { waiting: { places, longestMs } }, { clock });
}

/** Writes another route, and lets the server read it. */
async function reroute(more: Partial<Route>): Promise<void> {
  api.route(route(more));
  await clock.advance(readMs);
}

const speak = (signal?: AbortSignal) => api.post(words, { accept: "audio/pcm" }, { signal });

/** Reads one line of GET /load, like the operator. */
async function load(token = "internal-token"): Promise<PoolLoad> {
  const stop = new AbortController();
  const answer = await fetch(`${api.url}/load`, {
    headers: { authorization: `Bearer ${token}` },
    signal: stop.signal,
  });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  let text = "";
  for await (const piece of answer.body ?? []) {
    text += Buffer.from(piece).toString();
    if (text.includes("\n")) break;
  }
  stop.abort();
  const { pools } = JSON.parse(text.slice(0, text.indexOf("\n"))) as ApiLoad;
  if (pools.voice === undefined) throw new Error(text);
  return pools.voice;
}

const health = async () => {
  const answer = await fetch(`${api.url}/health`);
  return { status: answer.status, ...((await answer.json()) as { modelReachable: boolean }) };
};

describe("a pool that is scaled to zero", () => {
  it("holds the first request, reports the demand to the operator, and responds when the pool has a replica", async () => {
    await startAtZero();
    const answer = speak();
    await eventually("the held request in the load", async () => (await load()).waiting === 1);
    expect(await health()).toMatchObject({ status: 200, modelReachable: true });
    expect(model.calls).toHaveLength(0);
    await reroute({ idle: false });
    const { status } = await answer;
    expect(status).toBe(200);
    expect((await (await answer).arrayBuffer()).byteLength).toBe(0.2 * 24_000 * 2);
    expect(await load()).toMatchObject({ streams: 0, waiting: 0, replicas: {} });
  });

  it("counts as reachable while it starts, for the time limit of held requests", async () => {
    await startAtZero();
    model.ready = false;
    await reroute({ idle: false });
    await clock.advance(longestMs);
    expect((await health()).modelReachable).toBe(true);
    await clock.advance(1);
    expect((await health()).modelReachable).toBe(false);
  });

  it("rejects further requests with 503 and Retry-After when the limit of held requests is reached", async () => {
    await startAtZero();
    const held = [speak(), speak()];
    await eventually("two held requests", async () => (await load()).waiting === 2);
    const third = await speak();
    expect(third.headers.get("retry-after")).toBe("5");
    expect(await third.json()).toMatchObject({
      status: 503,
      code: "model_starting",
      detail: "arcana is starting and 2 requests already wait for the model; try again in a moment.",
    });
    await reroute({ idle: false });
    for (const answer of held) expect((await answer).status).toBe(200);
  });

  it("rejects a held request with 503 and Retry-After at its time limit", async () => {
    await startAtZero();
    const response = speak();
    await eventually("a held request", async () => (await load()).waiting === 1);
    await clock.advance(longestMs - 1);
    expect((await load()).waiting).toBe(1);
    await clock.advance(1);
    const answer = await response;
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(await answer.json()).toMatchObject({ status: 503, code: "model_starting" });
    expect((await load()).waiting).toBe(0);
  });

  it("ends a held request when its client disconnects", async () => {
    await startAtZero(1);
    const client = new AbortController();
    const answer = speak(client.signal).catch((error: Error) => error.name);
    await eventually("a held request", async () => (await load()).waiting === 1);
    client.abort();
    expect(await answer).toBe("AbortError");
    await eventually("no held request", async () => (await load()).waiting === 0);
    expect(model.calls).toHaveLength(0);
  });

  it("rejects requests if no scaler starts the pool", async () => {
    await startAtZero(undefined, { wakes: false });
    expect(await (await speak()).json()).toMatchObject({ status: 503, code: "model_unreachable" });
  });

  it("holds a request that the last, draining replica rejects", async () => {
    await startAtZero(undefined, { idle: false });
    model.script = (call) =>
      call.refuse(503, { code: "draining", detail: "going", status: 503, title: "draining" });
    const answer = speak();
    await eventually("a held request", async () => (await load()).waiting === 1);
    expect(model.calls).toHaveLength(1);
    const next = await startScriptedModel(speakTone(0.2));
    await reroute({ idle: false, service: next.url });
    expect((await answer).status).toBe(200);
    await next.close();
  });
});

describe("GET /load, which the operator reads for scaling,", () => {
  it("requires the internal token", async () => {
    await startAtZero();
    await expect(load("another")).rejects.toThrow("status 401");
    await expect(load(api.key)).rejects.toThrow("status 401");
  });

  it("reports the streams of each replica, and the time to first audio", async () => {
    const finish = Promise.withResolvers<void>();
    await startAtZero(undefined, { idle: false });
    model.script = speakUntil(finish.promise);
    const answers = [speak(), speak()];
    await eventually("two streams in the load", async () => (await load()).streams === 2);
    expect((await load()).replicas).toEqual({ [model.url]: 2 });
    await eventually(
      "the time to first audio in the load",
      async () => (await load()).firstAudioMs !== undefined,
    );
    expect(await sampleOf(api.url, 'svc_tts_pool_streams{pool="voice"}')).toBe(2);
    finish.resolve();
    for (const answer of answers) await (await answer).arrayBuffer();
    await eventually("no stream in the load", async () => (await load()).streams === 0);
  });

  it("ends with a complete line when the server stops", async () => {
    await startAtZero();
    const answer = await fetch(`${api.url}/load`, { headers: { authorization: "Bearer internal-token" } });
    const read = answer.text();
    await api.stop();
    expect((await read).endsWith("}\n"), "the last line is complete").toBe(true);
    api = await startTestApi(route({})); // afterEach stops this server.
  });
});
