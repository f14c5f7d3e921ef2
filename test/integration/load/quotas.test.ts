import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import { connectSharedLimits } from "../../../server/api/access/shared-limits.ts";
import type { ApiSettings } from "../../../server/start/api-settings.ts";
import { eventually } from "../../support/eventually.ts";
import { eventuallyOn, FakeClock } from "../../support/fake-clock.ts";
import { Relay } from "../../support/peers.ts";
import { rawSpeech, sampleOf, startTestApi, type TestApi } from "../../support/server/api-tier.ts";
import {
  type ScriptedModel,
  speakTone,
  speakUntil,
  startScriptedModel,
} from "../../support/server/scripted-model.ts";
import { startValkey, type TestValkey } from "../../support/server/valkey.ts";
import { heldRules } from "../contract/held-rules.ts";

const held = heldRules(import.meta.filename);
let valkey: TestValkey;
let model: ScriptedModel;
const apis: TestApi[] = [];

beforeAll(async () => {
  valkey = await startValkey({ password: "a password" });
  model = await startScriptedModel(speakTone(0.1));
});
afterEach(async () => {
  for (const api of apis.splice(0)) await api.stop();
  model.script = speakTone(0.1);
  model.calls.splice(0);
  if (valkey.client.status === "ready") await valkey.client.flushall();
});
afterAll(async () => {
  await model.close();
  await valkey.stop();
});

/** Starts an API tier. Each tier has its own secret for the key `good`, but all tiers count the same key. */
async function start(
  limits: ApiSettings["keyLimits"],
  shared = true,
  clock: Clock = new FakeClock(), // This clock never moves, so that requests to Valkey have no time limit.
): Promise<TestApi> {
  const common = { url: valkey.url, prefix: "test:", passwordFile: undefined, caFile: undefined };
  const valkeySettings = shared ? { ...common, password: "a password" } : undefined;
  const api = await startTestApi(model.url, { keyLimits: limits, valkey: valkeySettings }, { clock });
  apis.push(api);
  return api;
}

const body = { speaker: "abbie", text: "Hello." };
const speak = (api: TestApi, signal?: AbortSignal) => api.post(body, { accept: "audio/pcm" }, { signal });

async function statusOf(answer: Promise<Response>): Promise<number> {
  const { status, body: bytes } = await answer;
  await bytes?.cancel();
  return status;
}

/** Returns a script with which the model never ends its audio. */
const holdStreams = () => speakUntil(new Promise(() => undefined), 16_000);

const away = async ({ url }: TestApi) => (await sampleOf(url, "svc_tts_shared_limits_away ")) === 1;

describe("a key with a rate limit", () => {
  it("gets headers with its remaining requests, and Retry-After when none remain", async () => {
    const api = await start({ requestsPerMinute: 2 }, false);
    const first = await speak(api);
    await first.arrayBuffer();
    expect(Object.fromEntries(first.headers)).toMatchObject({
      "ratelimit-limit": "2",
      "ratelimit-remaining": "1",
      "ratelimit-reset": "60",
    });
    expect(await statusOf(speak(api))).toBe(200);
    const third = await speak(api);
    expect(third.status).toBe(429);
    expect(await third.json()).toMatchObject({ code: "rate_limited", status: 429 });
    const reset = Number(third.headers.get("ratelimit-reset"));
    expect(reset).toBeGreaterThan(0);
    expect(reset).toBeLessThanOrEqual(60);
    expect(third.headers.get("retry-after")).toBe(String(reset));
    expect(third.headers.get("ratelimit-remaining")).toBe("0");
    held.exercised("429");
  });

  it("has one limit for all replicas", async () => {
    const [one, other] = [await start({ requestsPerMinute: 3 }), await start({ requestsPerMinute: 3 })];
    expect(await statusOf(speak(one))).toBe(200);
    expect(await statusOf(speak(other))).toBe(200);
    expect(await statusOf(speak(one))).toBe(200);
    expect(await statusOf(speak(other))).toBe(429);
    expect(await statusOf(speak(one))).toBe(429);
  });

  it("is limited by each replica separately while Valkey is down, and has one limit again afterwards", async () => {
    const clock = new FakeClock();
    const one = await start({ requestsPerMinute: 3 }, true, clock);
    const other = await start({ requestsPerMinute: 3 });
    expect(await statusOf(speak(one))).toBe(200);
    expect(await statusOf(speak(other))).toBe(200);
    await valkey.kill();
    expect(await statusOf(speak(one))).toBe(200);
    expect(await statusOf(speak(one))).toBe(200);
    expect(await statusOf(speak(one))).toBe(429); // This replica has counted three requests.
    expect(await statusOf(speak(other))).toBe(200);
    expect(await away(one)).toBe(true);
    await valkey.restart();
    await eventuallyOn(clock, "the shared limit", async () => {
      await statusOf(speak(one));
      return !(await away(one));
    });
    expect(await valkey.client.keys("test:rate*")).toHaveLength(1);
  });

  it("is served while Valkey hangs", async () => {
    const api = await start({ requestsPerMinute: 100 }, true, systemClock);
    expect(await statusOf(speak(api))).toBe(200);
    valkey.process.kill("SIGSTOP");
    try {
      for (let i = 0; i < 5; i++) expect(await statusOf(speak(api))).toBe(200);
      expect(await away(api)).toBe(true);
    } finally {
      valkey.process.kill("SIGCONT");
    }
  });
});

describe("a client of Valkey", () => {
  const warnings: { err?: Error }[] = [];
  const aways: boolean[] = [];
  const connectTo = (url: string, password: string, clock: Clock) =>
    connectSharedLimits({
      url,
      password: () => password,
      authority: undefined,
      prefix: "test:",
      windowSeconds: 60,
      points: 1_000_000,
      log: {
        info: () => undefined,
        error: () => undefined,
        warn: (facts: object) => void warnings.push(facts),
      },
      onAway: (isAway) => aways.push(isAway),
      clock,
    });
  beforeEach(() => {
    warnings.splice(0);
    aways.splice(0);
  });

  it("waits once for a Valkey that hangs, and retries after a second", async () => {
    const clock = new FakeClock();
    const relay = await Relay.start(Number(new URL(valkey.url).port));
    const shared = await connectTo(`redis://${new URL(relay.url).host}`, "a password", clock);
    try {
      await eventually("a connection to Valkey", async () => {
        await clock.advance(1_000);
        return (await shared.count("id")) !== undefined;
      });
      valkey.process.kill("SIGSTOP");
      const counted = shared.count("id");
      await eventually("the request to Valkey", () => clock.timers === 1);
      await clock.advance(49);
      expect(clock.timers).toBe(1);
      await clock.advance(1);
      expect(await counted).toBeUndefined();
      expect(aways.at(-1)).toBe(true);
      const bytesBefore = relay.bytesAsked;
      for (let i = 0; i < 5; i++) expect(await shared.count("id")).toBeUndefined();
      await clock.advance(999);
      expect(await shared.count("id")).toBeUndefined();
      expect({ bytes: relay.bytesAsked, timers: clock.timers }).toEqual({ bytes: bytesBefore, timers: 0 });
      await clock.advance(1);
      valkey.process.kill("SIGCONT");
      expect(await shared.count("id")).toBeDefined();
      expect(aways.at(-1)).toBe(false);
    } finally {
      valkey.process.kill("SIGCONT");
      await shared.close();
      await relay.close();
    }
  });

  it("waits for its connection at the start, for at most two seconds", async () => {
    const clock = new FakeClock();
    const relay = await Relay.start(Number(new URL(valkey.url).port));
    const connectThrough = () => connectTo(`redis://${new URL(relay.url).host}`, "a password", clock);
    valkey.process.kill("SIGSTOP");
    try {
      const connecting = connectThrough();
      await eventually("a request to Valkey", () => relay.bytesAsked > 0);
      expect(clock.timers).toBe(1);
      valkey.process.kill("SIGCONT");
      const connected = await connecting;
      expect(await connected.count("id")).toBeDefined();
      await connected.close();
      valkey.process.kill("SIGSTOP");
      const timingOut = connectThrough();
      await clock.advance(2_000);
      const unconnected = await timingOut;
      expect(await unconnected.count("id")).toBeUndefined();
      await unconnected.close();
    } finally {
      valkey.process.kill("SIGCONT");
      await relay.close();
    }
  });

  it("does not report Valkey as unavailable if the process of the client was delayed", async () => {
    let nowMs = 0;
    const timers: (() => void)[] = [];
    const clock: Clock = {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      after: (_delayMs, callback) => {
        timers.push(callback);
        return () => undefined;
      },
    };
    const shared = await connectTo(valkey.url, "a password", clock);
    try {
      await eventually("a connection to Valkey", () => {
        nowMs += 10_000;
        return shared.count("id");
      });
      timers.splice(0);
      const counted = shared.count("id");
      await eventually("the request to Valkey", () => timers.length === 1);
      nowMs += 300; // This simulates a pause of the process, which delays its timer.
      timers[0]?.();
      expect(await counted).toBeDefined();
    } finally {
      await shared.close();
    }
  });

  it("logs the reason once if Valkey rejects the connection", async () => {
    const clock = new FakeClock();
    const relay = await Relay.start(Number(new URL(valkey.url).port));
    const shared = await connectTo(`redis://${new URL(relay.url).host}`, "a wrong one", clock);
    await eventually("Valkey to close the connection", () => relay.hangups.length > 0);
    for (let i = 0; i < 3; i++) {
      expect(await shared.count("id")).toBeUndefined();
      await clock.advance(1_100);
    }
    await shared.close();
    await relay.close();
    expect(warnings.map(({ err }) => err?.message)).toEqual([
      expect.stringMatching(/WRONGPASS|invalid .*password/),
    ]);
    expect(aways).toEqual([true]);
  });
});

describe("a key with a stream limit", () => {
  it("has one limit for all replicas, and every stream counts only until its end", async () => {
    const [one, other] = [await start({ streams: 2 }), await start({ streams: 2 })];
    model.script = holdStreams();
    const [first, second] = [new AbortController(), new AbortController()];
    await speak(one, first.signal);
    await speak(other, second.signal);
    const rejected = await speak(one);
    expect(rejected.status).toBe(429);
    expect(rejected.headers.get("retry-after")).toBe("1");
    expect(await rejected.json()).toMatchObject({ code: "too_many_streams" });
    expect(await statusOf(speak(other))).toBe(429);
    first.abort(); // The client disconnects.
    await eventually("an accepted request", async () => (await statusOf(speak(other))) === 200);
    second.abort();
    await eventually("no counted stream", async () => (await valkey.client.zcard("test:streams:good")) === 0);
    model.script = (call) => call.cut(); // The model fails.
    expect(await statusOf(speak(one))).toBe(502);
    model.script = speakTone(0.1); // The response ends normally.
    for (let i = 0; i < 4; i++) {
      const answer = await speak(i % 2 === 0 ? one : other);
      await answer.arrayBuffer();
      expect(answer.status).toBe(200);
    }
    await eventually("no counted stream", async () => (await valkey.client.zcard("test:streams:good")) === 0);
  });

  it("can use the streams of a crashed replica after the end of their leases", async () => {
    const api = await start({ streams: 1 });
    const lease = async (leftMs: number) => {
      const [seconds, microseconds] = await valkey.client.time();
      const end = Number(seconds) * 1000 + Number(microseconds) / 1000 + leftMs;
      await valkey.client.zadd("test:streams:good", end, "of a replica that crashed");
    };
    await lease(600_000);
    expect(await statusOf(speak(api))).toBe(429);
    await lease(-1);
    await eventually("an accepted request after the lease", async () => (await statusOf(speak(api))) === 200);
  });

  it("has a separate limit on each replica while Valkey is unavailable", async () => {
    const api = await start({ streams: 1 });
    await valkey.kill();
    model.script = holdStreams();
    const held = new AbortController();
    expect((await speak(api, held.signal)).status).toBe(200);
    expect(await statusOf(speak(api))).toBe(429);
    await valkey.restart();
    held.abort();
    await eventually("an accepted request", async () => (await statusOf(speak(api))) === 200);
  });

  it("does not count a stream after the client disconnected before its start", async () => {
    const api = await start({ streams: 1 });
    const { hostname, port } = new URL(api.url);
    const socket = connect(Number(port), hostname, () => {
      socket.write(rawSpeech(api, body, "audio/pcm"));
      socket.destroySoon();
    });
    await eventually("an accepted request", async () => (await statusOf(speak(api))) === 200);
  });
});
