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

/** Rejected at once if there is no free slot. */
function invokeNow(url: string, invocation: Partial<Invocation>): Promise<Response> {
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

/** A stream in progress. It is not read further, so its engine has more work. */
async function occupy(url: string): Promise<() => void> {
  const gone = new AbortController();
  const answer = await invoke(url, endless, gone.signal);
  expect((await framesOf(answer).next()).value).toMatchObject({ kind: "head", engine: "kokoro" });
  return () => gone.abort();
}

describe("a mounted model at capacity", () => {
  test("rejects a stream with Retry-After, and no other engine speaks instead", async () => {
    const { url } = await start({ streams: 1 });
    const leave = await occupy(url);
    const refused = await invokeNow(url, spanish);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ code: "saturated" });
    expect((await hear(url, { text: "Hello." })).engine).toBe("flite");
    leave();
    await eventually("its slot is free", async () => (await invokeNow(url, spanish)).status === 200);
  });

  test("has a free slot as soon as the engine has no more work, also if the client reads nothing", async () => {
    const { url } = await start({ streams: 1 });
    const unread = await invoke(url, spanish);
    expect(unread.status).toBe(200);
    await eventually("its slot is free", async () => {
      const next = await invokeNow(url, spanish);
      await next.body?.cancel();
      return next.status === 200;
    });
    await unread.body?.cancel();
  });

  test("is replaced by the built-in engine where the deployment asks for it", async () => {
    const { url } = await start({ streams: 1, fallsBack: true });
    expect((await hear(url, spanish)).engine).toBe("kokoro");
    const leave = await occupy(url);
    expect((await hear(url, spanish)).engine).toBe("espeak");
    const own = await invokeNow(url, { ...spanish, speaker: "koko-a" });
    expect(own.status).toBe(503);
    leave();
    await eventually("Kokoro speaks again", async () => (await hear(url, spanish)).engine === "kokoro");
  });

  test("has a measured number of streams otherwise, which its list and its metrics report", async () => {
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

describe("arcana by a mounted model", () => {
  test.each([
    ["no sampling options", {}, 200],
    ["a limit of tokens", { maxTokens: 400 }, 200],
    ["a temperature", { temperature: 0.9 }, 400],
    ["a repetition penalty", { repetitionPenalty: 1 }, 400],
    ["a share of the probability", { topP: 0.5 }, 400],
  ])("with %s", async (_what, given, status) => {
    const { url } = await start({ naturalModels: ["arcana"] }, { tier: "arcana", generator: "flite" });
    const sampling = { ...plainInvocation.sampling, ...given };
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
          detail: "has no effect here: kokoro speaks this voice, and does not sample. Leave it out.",
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

  test("reports the engine of each voice, and by model where the models have different ones", async () => {
    const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
    const { url } = await start({ naturalModels: ["mist"] }, { tokens });
    const route = [{ service: url, pool: "mist", weight: 100, idle: false }];
    const settings = { voices: builtInVoices, timing: { voicesIntervalMs: 50 } };
    api = await startTestApi({ mist: route, mistv2: route }, settings);
    stops.push(() => api.stop());
    await eventually("the engines are reported", async () => (await voices()).some(({ engine }) => engine));
    const listed = await voices();
    expect(listed.slice(0, 2).map(({ id, engine }) => [id, engine])).toEqual([
      ["koko-a", "kokoro"],
      ["koko-b", "kokoro"],
    ]);
    const of = (wanted: string) => listed.find(({ id }) => id === wanted);
    expect(of("lucia")).toMatchObject({ engine: "kokoro", license: "Apache-2.0" });
    expect(of("diego")).toMatchObject({ engine: "espeak" });
    expect(of("greta")).toMatchObject({ engine: "espeak" });
    expect(of("alan")).toMatchObject({ engines: { mist: "kokoro", mistv2: "flite" } });
    expect(of("alan")).not.toHaveProperty("engine");
    expect(of("alan")?.license).toMatch(/^Apache-2\.0; BSD-like/);
    for (const [modelId, engine] of Object.entries(of("alan")?.engines ?? {})) {
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
