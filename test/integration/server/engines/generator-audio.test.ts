import { afterAll, beforeAll, expect, test } from "vitest";
import { voices, voicesOf } from "../../../../config/contract/voices.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { TinyModelFolder, tinyManifest } from "../../../support/generator/model-folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { hear, invoke, modelTier } from "../../../support/server/model-tier.ts";

/** A model that serves `POST /v1/audio/speech` itself. The project's own server is a real example. */
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
  const own = new TinyModelFolder();
  const { sha256 } = own;
  const manifest = { kind: "audio", license: tinyManifest.license, voices: names, sha256, rate };
  own.write("manifest.json", JSON.stringify(manifest));
  return own;
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

/** The number of streams in progress. */
async function streams(): Promise<number> {
  const exposition = await (await fetch(`${speaking.url}/metrics`)).text();
  return Number(/^svc_tts_model_streams(?:\{[^}]*\})? (\d+)$/mu.exec(exposition)?.[1]);
}

test("the audio of a generator arrives phrase by phrase, with an estimated time for each word", async () => {
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

test("the generator's other voices sound different", async () => {
  const say = (speaker: string) => hear(tier.url, { modelId: "arcana", speaker, text: "Good morning." });
  const [luna, walnut] = [await say("luna"), await say("walnut")];
  expect(walnut.samples).not.toEqual(luna.samples);
});

test("a client's disconnect stops the generator", async () => {
  const leave = new AbortController();
  const long = `${text} `.repeat(100); // More than the connection buffers while the client does not read.
  const response = await invoke(tier.url, { modelId: "arcana", speaker: "luna", text: long }, leave.signal);
  expect(response.status).toBe(200);
  expect(await streams()).toBeGreaterThan(0);
  leave.abort();
  await eventually("it speaks nothing", async () => (await streams()) === 0);
});

test("a voice that the generator does not have fails with an error of the model", async () => {
  const odd = audioFolder(
    Object.fromEntries(voicesOf("arcana").map(({ id }) => [id, id === "luna" ? id : "unknown"])),
  );
  const other = await modelTier({ tier: "arcana", generator: "vllm", model: settings(odd) });
  const ask = (speaker: string) => invoke(other.url, { modelId: "arcana", speaker, text: "Good morning." });
  expect((await ask("astra")).status).toBe(502);
  expect((await ask("luna")).status).toBe(200);
  await other.stop();
  odd.delete();
});
