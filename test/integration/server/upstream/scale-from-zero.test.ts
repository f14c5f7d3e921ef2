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

/** Tests a pool at zero over real sockets: requests are held until it has a replica, within limits. */

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

async function asleep(places = 2, more: Partial<Route> = {}): Promise<void> {
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

/** Reads one line of the load endpoint, like the operator. */
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
  it("holds the first request, reports the demand to the operator, and responds once the pool has a replica", async () => {
    await asleep();
    const answer = speak();
    await eventually("the operator hears of it", async () => (await load()).waiting === 1);
    expect(await health()).toMatchObject({ status: 200, modelReachable: true });
    expect(model.calls).toHaveLength(0);
    await reroute({ idle: false });
    const { status } = await answer;
    expect(status).toBe(200);
    expect((await (await answer).arrayBuffer()).byteLength).toBe(0.2 * 24_000 * 2);
    expect(await load()).toMatchObject({ streams: 0, waiting: 0, replicas: {} });
  });

  it("counts as reachable while it starts, for as long as requests are held for it", async () => {
    await asleep();
    model.ready = false;
    await reroute({ idle: false });
    await clock.advance(longestMs);
    expect((await health()).modelReachable).toBe(true);
    await clock.advance(1);
    expect((await health()).modelReachable).toBe(false);
  });

  it("refuses further requests with 503 and Retry-After when the limit of held requests is reached", async () => {
    await asleep();
    const held = [speak(), speak()];
    await eventually("both wait", async () => (await load()).waiting === 2);
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

  it("refuses a held request with 503 and Retry-After when its time is over", async () => {
    await asleep();
    const asked = speak();
    await eventually("it waits", async () => (await load()).waiting === 1);
    await clock.advance(longestMs - 1);
    expect((await load()).waiting).toBe(1);
    await clock.advance(1);
    const answer = await asked;
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(await answer.json()).toMatchObject({ status: 503, code: "model_starting" });
    expect((await load()).waiting).toBe(0);
  });

  it("forgets a held request when its client disconnects", async () => {
    await asleep(1);
    const caller = new AbortController();
    const answer = speak(caller.signal).catch((error: Error) => error.name);
    await eventually("it waits", async () => (await load()).waiting === 1);
    caller.abort();
    expect(await answer).toBe("AbortError");
    await eventually("its place is free", async () => (await load()).waiting === 0);
    expect(model.calls).toHaveLength(0);
  });

  it("rejects requests for a pool that nothing starts", async () => {
    await asleep(undefined, { wakes: false });
    expect(await (await speak()).json()).toMatchObject({ status: 503, code: "model_unreachable" });
  });

  it("holds a request that finds the last replica stopping", async () => {
    await asleep(undefined, { idle: false });
    model.script = (call) =>
      call.refuse(503, { code: "draining", detail: "going", status: 503, title: "draining" });
    const answer = speak();
    await eventually("it waits", async () => (await load()).waiting === 1);
    expect(model.calls).toHaveLength(1);
    const next = await startScriptedModel(speakTone(0.2));
    await reroute({ idle: false, service: next.url });
    expect((await answer).status).toBe(200);
    await next.close();
  });
});

describe("the load that the operator scales by", () => {
  it("requires the internal token", async () => {
    await asleep();
    await expect(load("another")).rejects.toThrow("status 401");
    await expect(load(api.key)).rejects.toThrow("status 401");
  });

  it("counts streams by replica, and their time to first audio", async () => {
    const finish = Promise.withResolvers<void>();
    await asleep(undefined, { idle: false });
    model.script = speakUntil(finish.promise);
    const answers = [speak(), speak()];
    await eventually("both speak", async () => (await load()).streams === 2);
    expect((await load()).replicas).toEqual({ [model.url]: 2 });
    await eventually("both were heard", async () => (await load()).firstAudioMs !== undefined);
    expect(await sampleOf(api.url, 'svc_tts_pool_streams{pool="voice"}')).toBe(2);
    finish.resolve();
    for (const answer of answers) await (await answer).arrayBuffer();
    await eventually("both are over", async () => (await load()).streams === 0);
  });

  it("ends with the server, and delays its stop only briefly", async () => {
    await asleep();
    const answer = await fetch(`${api.url}/load`, { headers: { authorization: "Bearer internal-token" } });
    const read = answer.text();
    await api.stop();
    expect((await read).endsWith("}\n"), "its end, and not that of a connection that was cut").toBe(true);
    api = await startTestApi(route({})); // because all held requests end together
  });
});
