import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { voices as builtInVoices } from "../../../../config/contract/voices.ts";
import type { Invocation } from "../../../../server/contract/speech.ts";
import { noQueueHeader } from "../../../../server/contract/wire.ts";
import type { ModelTierOptions } from "../../../../server/model/settings.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  framesOf,
  hear,
  internalToken,
  invoke,
  modelTier,
  plainInvocation,
} from "../../../support/server/model-tier.ts";
import { VoicesFolder } from "../../../support/voices/folder.ts";

let folder: VoicesFolder;
beforeAll(() => {
  folder = new VoicesFolder();
  folder.kokoro("koko", {
    espeak: "es",
    voices: [
      { language: "spa", replaces: ["lucia"] },
      { language: "eng", mayReplace: ["alan", "luna"] },
    ],
  });
});
afterAll(() => folder.delete());

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function start(
  voices: Partial<ModelTierOptions["voices"]>,
  more: Partial<ModelTierOptions> = {},
): Promise<RunningTier> {
  const mounted = { folder: folder.path, providers: ["cpu"], processes: 1, intervalMs: 50, ...voices };
  const tier = await modelTier({ voices: mounted, drainSeconds: 0, ...more });
  stops.push(() => tier.stop());
  return tier;
}

const spanish = { speaker: "lucia", lang: "spa", text: "Hola amigos." } as const;
const endless = { ...spanish, text: "Hola amigos. ".repeat(20_000) };

/** Sends an invocation that is rejected immediately if no slot is free. */
function invokeWithoutQueue(url: string, invocation: Partial<Invocation>): Promise<Response> {
  return fetch(`${url}/invocations`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${internalToken}`,
      "content-type": "application/json",
      [noQueueHeader]: "1",
    },
    body: JSON.stringify({ ...plainInvocation, ...invocation }),
  });
}

/**
 * Starts a stream that keeps its engine busy, because the client does not read. Returns a function that ends
 * it.
 */
async function occupy(url: string): Promise<() => void> {
  const client = new AbortController();
  const answer = await invoke(url, endless, client.signal);
  expect((await framesOf(answer).next()).value).toMatchObject({ kind: "head", engine: "kokoro" });
  return () => client.abort();
}

describe("a mounted model at capacity", () => {
  test("rejects a stream with Retry-After, and no other engine serves it", async () => {
    const { url } = await start({ streams: 1 });
    const leave = await occupy(url);
    const rejected = await invokeWithoutQueue(url, spanish);
    expect(rejected.status).toBe(503);
    expect(Number(rejected.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await rejected.json()).toMatchObject({ code: "saturated" });
    expect((await hear(url, { text: "Hello." })).engine).toBe("flite");
    leave();
    await eventually("a free slot", async () => (await invokeWithoutQueue(url, spanish)).status === 200);
  });

  test("has a free slot when the engine has finished its work, also if the client does not read", async () => {
    const { url } = await start({ streams: 1 });
    const unread = await invoke(url, spanish);
    expect(unread.status).toBe(200);
    await eventually("a free slot", async () => {
      const next = await invokeWithoutQueue(url, spanish);
      await next.body?.cancel();
      return next.status === 200;
    });
    await unread.body?.cancel();
  });

  test("is replaced by the built-in engine with the setting fallsBack", async () => {
    const { url } = await start({ streams: 1, fallsBack: true });
    expect((await hear(url, spanish)).engine).toBe("kokoro");
    const leave = await occupy(url);
    expect((await hear(url, spanish)).engine).toBe("espeak");
    const mountedVoice = await invokeWithoutQueue(url, { ...spanish, speaker: "koko-a" });
    expect(mountedVoice.status).toBe(503);
    leave();
    await eventually("a stream by Kokoro", async () => (await hear(url, spanish)).engine === "kokoro");
  });

  test("without the setting streams has a measured capacity, which GET /voices and the metrics report", async () => {
    const { url } = await start({});
    await hear(url, spanish);
    const { models } = (await (await fetch(`${url}/voices`)).json()) as {
      models: { realTimeStreams: number }[];
    };
    expect(models[0]?.realTimeStreams).toBeGreaterThanOrEqual(1);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const capacity = /^svc_tts_mounted_model_stream_capacity\{engine="kokoro"\} (\d+)$/m.exec(metrics)?.[1];
    expect(Number(capacity)).toBe(models[0]?.realTimeStreams);
    expect(metrics).toMatch(/^svc_tts_mounted_model_streams\{engine="kokoro"\} 0$/m);
  });
});

describe("arcana with a mounted model responds", () => {
  test.each([
    ["no sampling options", {}, 200],
    ["max_tokens", { maxTokens: 400 }, 200],
    ["a temperature", { temperature: 0.9 }, 400],
    ["a repetition penalty", { repetitionPenalty: 1 }, 400],
    ["top_p", { topP: 0.5 }, 400],
  ])("to a request with %s and %j with %i", async (_what, options, status) => {
    const { url } = await start({ naturalModels: ["arcana"] }, { tier: "arcana", generator: "flite" });
    const sampling = { ...plainInvocation.sampling, ...options };
    const answer = await invoke(url, { speaker: "luna", modelId: "arcana", sampling });
    expect(answer.status).toBe(status);
    if (status === 200) {
      expect((await framesOf(answer).next()).value).toMatchObject({ kind: "head", engine: "kokoro" });
      return;
    }
    expect(await answer.json()).toMatchObject({
      code: "invalid_request",
      errors: [
        {
          pointer: expect.stringMatching(/^\/(temperature|repetition_penalty|top_p)$/),
          detail: "has no effect: the engine kokoro of this voice does not sample. Remove the field.",
        },
      ],
    });
  });
});

describe("the API tier", () => {
  let api: TestApi;
  type Voice = { id: string; engine?: string; engines?: Record<string, string>; license: string };
  const voices = async () =>
    ((await (await fetch(`${api.url}/v1/voices`)).json()) as { voices: Voice[] }).voices;

  test("reports the engine of each voice, and an engine for each model if the models have different engines", async () => {
    const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
    const { url } = await start({ naturalModels: ["mist"] }, { tokens });
    const route = [{ service: url, pool: "mist", weight: 100, idle: false }];
    const settings = { voices: builtInVoices, timing: { voicesIntervalMs: 50 } };
    api = await startTestApi({ mist: route, mistv2: route }, settings);
    stops.push(() => api.stop());
    await eventually("the engines of the voices", async () => (await voices()).some(({ engine }) => engine));
    const listed = await voices();
    expect(listed.slice(0, 2).map(({ id, engine }) => [id, engine])).toEqual([
      ["koko-a", "kokoro"],
      ["koko-b", "kokoro"],
    ]);
    const voice = (voiceId: string) => listed.find(({ id }) => id === voiceId);
    expect(voice("lucia")).toMatchObject({ engine: "kokoro", license: "Apache-2.0" });
    expect(voice("diego")).toMatchObject({ engine: "espeak" });
    expect(voice("greta")).toMatchObject({ engine: "espeak" });
    expect(voice("alan")).toMatchObject({ engines: { mist: "kokoro", mistv2: "flite" } });
    expect(voice("alan")).not.toHaveProperty("engine");
    expect(voice("alan")?.license).toMatch(/^Apache-2\.0; BSD-like/);
    for (const [modelId, engine] of Object.entries(voice("alan")?.engines ?? {})) {
      const answer = await api.post({ speaker: "alan", modelId, text: "Good day." }, { accept: "audio/pcm" });
      expect(answer.headers.get("x-voice-engine"), modelId).toBe(engine);
      await answer.arrayBuffer();
    }
    const { data } = (await (await fetch(`${api.url}/v1/models`)).json()) as {
      data: { id: string; engines: string[] }[];
    };
    expect(data.map(({ engines }) => engines.toSorted())).toEqual([
      ["espeak", "flite", "kokoro"],
      ["espeak", "flite", "kokoro"],
    ]);
  });
});
