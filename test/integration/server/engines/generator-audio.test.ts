import { afterAll, beforeAll, expect, test } from "vitest";
import { voices, voicesOf } from "../../../../config/contract/voices.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { TinyModelFolder, tinyManifest } from "../../../support/generator/model-folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { hear, invoke, modelTier } from "../../../support/server/model-tier.ts";

/**
 * Tests a generator that returns audio by `POST /v1/audio/speech`. The API tier of this project is the
 * generator.
 */
const rate = 24_000;
const text = "The train to the coast leaves from platform nine. Please have your ticket ready.";

let speaking: RunningTier;
let api: TestApi;
let folder: TinyModelFolder;
let tier: RunningTier;
beforeAll(async () => {
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  speaking = await modelTier({ tier: "arcana", tokens });
  const routes = { arcana: [{ pool: "p", service: speaking.url, weight: 100, idle: false }] };
  api = await startTestApi(routes, { voices });
  folder = audioFolder(Object.fromEntries(voicesOf("arcana").map(({ id }) => [id, id])));
  tier = await modelTier({ tier: "arcana", generator: "vllm", model: settings(folder) });
});
afterAll(async () => {
  await tier.stop();
  folder.delete();
  await api.stop();
  await speaking.stop();
});

function audioFolder(names: Record<string, string>): TinyModelFolder {
  const modelFolder = new TinyModelFolder();
  const { sha256 } = modelFolder;
  const manifest = { kind: "audio", license: tinyManifest.license, voices: names, sha256, rate };
  modelFolder.write("manifest.json", JSON.stringify(manifest));
  return modelFolder;
}

function settings({ path }: TinyModelFolder) {
  return {
    folder: path,
    server: { kind: "elsewhere", url: api.url, apiKey: api.key },
    startSeconds: 60,
    hangSeconds: 60,
    timesWithinMs: 60_000,
    capacity: 4,
    seed: undefined,
    codec: { providers: ["cpu"], processes: undefined },
  } as const;
}

/** Returns the number of streams in progress of the generator. */
async function streams(): Promise<number> {
  const exposition = await (await fetch(`${speaking.url}/metrics`)).text();
  return Number(/^svc_tts_model_streams(?:\{[^}]*\})? (\d+)$/mu.exec(exposition)?.[1]);
}

test("the speech of a generator has all phrases, with an estimated timestamp of each word", async () => {
  const {
    engine,
    rate: heardRate,
    samples,
    words,
  } = await hear(tier.url, { modelId: "arcana", speaker: "luna", text });
  expect([engine, heardRate]).toEqual(["vllm", rate]);
  const seconds = samples.length / rate;
  expect(seconds).toBeGreaterThan(3);
  expect(seconds).toBeLessThan(10);
  const loudness = Math.sqrt(samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length);
  expect(loudness).toBeGreaterThan(300);
  expect(words.map(({ word }) => word).join(" ")).toBe(text.replaceAll(".", ""));
  for (const [i, { start, end }] of words.entries()) {
    expect(end).toBeGreaterThan(start);
    expect(start).toBeGreaterThanOrEqual(words[i - 1]?.end ?? 0);
  }
  expect(words.at(-1)?.end).toBeLessThanOrEqual(seconds + 0.001); // Times are rounded to the millisecond.
});

test("another voice of the generator has other audio", async () => {
  const say = (speaker: string) => hear(tier.url, { modelId: "arcana", speaker, text: "Good morning." });
  const [luna, walnut] = [await say("luna"), await say("walnut")];
  expect(walnut.samples).not.toEqual(luna.samples);
});

test("a client's disconnect stops the generator", async () => {
  const client = new AbortController();
  const long = `${text} `.repeat(100); // This is more audio than the connection buffers without a reader.
  const response = await invoke(tier.url, { modelId: "arcana", speaker: "luna", text: long }, client.signal);
  expect(response.status).toBe(200);
  expect(await streams()).toBeGreaterThan(0);
  client.abort();
  await eventually("no stream of the generator", async () => (await streams()) === 0);
});

test("a voice that the generator does not have causes a 502", async () => {
  const withUnknownVoices = audioFolder(
    Object.fromEntries(voicesOf("arcana").map(({ id }) => [id, id === "luna" ? id : "unknown"])),
  );
  const other = await modelTier({ tier: "arcana", generator: "vllm", model: settings(withUnknownVoices) });
  const send = (speaker: string) => invoke(other.url, { modelId: "arcana", speaker, text: "Good morning." });
  expect((await send("astra")).status).toBe(502);
  expect((await send("luna")).status).toBe(200);
  await other.stop();
  withUnknownVoices.delete();
});
