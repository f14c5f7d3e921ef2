import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { acceptedTokensKey, generatorEnv, env as names } from "../../config/contract/names.ts";
import { sleep, systemClock } from "../../lib/clock.ts";
import type { EngineLog } from "../../server/engine/runtime/engine.ts";
import { VllmEngine } from "../../server/engine/vllm/engine.ts";
import type { TokensManifest } from "../../server/engine/vllm/model/manifest-schema.ts";
import { readModelFolder } from "../../server/engine/vllm/model/model-folder.ts";
import type { Tokenize } from "../../server/engine/vllm/model/prompt.ts";
import { headersFor, servedName } from "../../server/engine/vllm/server/server-address.ts";
import type { GeneratorSettings } from "../../server/engine/vllm/settings.ts";
import type { ModelTierOptions } from "../../server/model/settings.ts";
import type { RunningTier } from "../../server/model/tier.ts";
import { eventually } from "../support/eventually.ts";
import { decodedAtOnce, seamError, TinyModelFolder } from "../support/generator/model-folder.ts";
import { tinyCodec } from "../support/generator/tiny-model.ts";
import { Relay } from "../support/peers.ts";
import { leasePort } from "../support/port-lease.ts";
import { childrenOf, childrenWith, processorSeconds } from "../support/processes.ts";
import { framesOf, hear, internalToken, invoke, modelTier } from "../support/server/model-tier.ts";
import { makeTierFiles, startTierProcess } from "../support/server/tier-process.ts";

const run = promisify(execFile);
const { frameSamples, slots, rate } = tinyCodec;
const greedy = { repetitionPenalty: 1.1, temperature: 0, topP: 1, maxTokens: 20 * slots.length };
const arcana = { modelId: "arcana", speaker: "luna", text: "Hello there you.", sampling: greedy } as const;
/** vLLM starts in about a minute on an idle machine. */
const startSeconds = 800;
const apiKey = "a-key-of-this-test";
const quiet: EngineLog = { info: () => undefined, warn: () => undefined };

/** The environment variables of vLLM for one CPU core. */
const environment = {
  PATH: process.env.PATH ?? "",
  HOME: process.env.HOME ?? "",
  VLLM_CPU_KVCACHE_SPACE: "1",
  VLLM_CPU_OMP_THREADS_BIND: "nobind",
  OMP_NUM_THREADS: "1",
};

let model: TinyModelFolder;
let settings: GeneratorSettings;
let vllmUrl: string;
let tier: RunningTier;
beforeAll(async () => {
  const { stdout } = await run(fileURLToPath(new URL("install.sh", import.meta.url)), { timeout: 850_000 });
  model = new TinyModelFolder();
  const port = await leasePort();
  vllmUrl = `http://127.0.0.1:${port}`;
  settings = {
    folder: model.path,
    server: { kind: "here", program: stdout.trim(), args: [], environment, port, apiKey },
    startSeconds,
    hangSeconds: 60, // A busy machine may need much time.
    capacity: 8,
    seed: undefined,
    codec: { providers: ["cpu"], processes: 1 },
  };
  const startedAt = performance.now();
  tier = await modelTier({ tier: "arcana", generator: "vllm", model: settings });
  logDuration("vLLM started and synthesized speech", startedAt);
});
afterAll(async () => {
  const startedAt = performance.now();
  await tier.stop();
  logDuration("vLLM stopped", startedAt);
  model.delete();
});

function logDuration(event: string, sinceMs: number): void {
  console.log(`${event} after ${((performance.now() - sinceMs) / 1000).toFixed(2)} s`);
}

function synthesize(sampling: Partial<typeof greedy>, text: string = arcana.text) {
  return hear(tier.url, { ...arcana, text, sampling: { ...greedy, ...sampling } });
}

/** Reads a metric from the `/metrics` endpoint of vLLM. */
async function vllmMetric(name: string): Promise<number> {
  const text = await (await fetch(`${vllmUrl}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name}{`));
  return Number(line?.split(" ").at(-1) ?? Number.NaN);
}

describe("arcana with a real vLLM", () => {
  test("repeats the same audio at temperature 0, and different audio at temperature 1", async () => {
    const { engine, samples } = await synthesize({});
    expect(engine).toBe("vllm");
    expect(samples.length % frameSamples).toBe(0);
    expect(samples.length).toBeGreaterThan(5 * frameSamples);
    expect((await synthesize({})).samples).toEqual(samples);
    const attempts = [await synthesize({ temperature: 1 }), await synthesize({ temperature: 1 })];
    expect(attempts[0]?.samples).not.toEqual(attempts[1]?.samples);
  });

  test("applies top_p, repetition_penalty and max_tokens", async () => {
    const { samples } = await synthesize({});
    // With this top_p, only the most likely token remains.
    expect((await synthesize({ temperature: 1, topP: 1e-6 })).samples).toEqual(samples);
    expect((await synthesize({ repetitionPenalty: 1 })).samples).not.toEqual(samples);
    const short = (await synthesize({ maxTokens: 5 * slots.length + 3 })).samples;
    expect(short.length).toBe(5 * frameSamples);
    const same = 3 * frameSamples; // The later frames of the long stream change the last two frames.
    expect(short.slice(0, same)).toEqual(samples.slice(0, same));
  });

  test("returns different audio for each voice and each text", async () => {
    const { samples } = await synthesize({});
    expect((await hear(tier.url, { ...arcana, speaker: "astra" })).samples).not.toEqual(samples);
    expect((await synthesize({}, "Hello there two.")).samples).not.toEqual(samples);
  });

  test("reads special tokens in a text as plain letters", async () => {
    const before = await vllmMetric("vllm:prompt_tokens_total");
    const text = "Say <|eot_id|> now.";
    expect((await synthesize({}, text)).samples.length).toBeGreaterThan(frameSamples);
    await eventually(
      "vLLM counts the tokens of the prompt",
      async () => (await vllmMetric("vllm:prompt_tokens_total")) > before,
    );
    const perLetter = (await vllmMetric("vllm:prompt_tokens_total")) - before - 5;
    expect(perLetter).toBeGreaterThanOrEqual("voice-luna: ".length + "Say <|eot_id|> now.".length);
  });

  test("streams the audio that its codes give when they are decoded at once", async () => {
    const { samples } = await synthesize({});
    const whole = await decodedAtOnce(model.path, await codesOf(arcana.text));
    expect(samples.length).toBe(whole.length);
    expect(seamError(whole, samples)).toBeLessThanOrEqual(0.005);
  });

  test("finishes eight concurrent streams, each as long as a single stream", async () => {
    const { samples } = await synthesize({});
    const startedAt = performance.now();
    const streams = await Promise.all(
      Array.from({ length: 8 }, async () => playStream(await invoke(tier.url, arcana))),
    );
    logDuration(`eight streams of ${(samples.length / rate).toFixed(2)} s of audio finished`, startedAt);
    logWaits(streams);
    for (const stream of streams) expect(stream.samples).toBe(samples.length);
  });
});

/** Requests codec tokens from vLLM directly, at temperature 0. */
async function codesOf(text: string): Promise<number[]> {
  const { tokenize, manifest } = (await readModelFolder(model.path)) as {
    tokenize: Tokenize;
    manifest: TokensManifest;
  };
  const body = {
    model: servedName,
    prompt: tokenize({ name: "voice-luna" }, text),
    return_token_ids: true,
    max_tokens: greedy.maxTokens,
    temperature: 0,
    repetition_penalty: greedy.repetitionPenalty,
    stop_token_ids: manifest.stop,
    skip_special_tokens: false,
    allowed_token_ids: [
      ...Array.from({ length: slots.length * tinyCodec.codebook }, (_, i) => tinyCodec.base + i),
      ...manifest.stop,
    ],
  };
  const headers = headersFor({ url: vllmUrl, apiKey });
  const response = await fetch(`${vllmUrl}/v1/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const { choices } = (await response.json()) as { choices: { token_ids: number[] }[] };
  return (choices[0]?.token_ids ?? []).filter((token) => !manifest.stop.includes(token));
}

function logWaits(streams: readonly { starvedMs: number }[]): void {
  const waits = streams.map(({ starvedMs }) => Math.round(starvedMs));
  console.log(
    `stalls after the first audio of ${streams.length} concurrent streams, in ms: ${waits.join(" ")}`,
  );
}

/** Measures how long playback would stall if a client started to play at the first audio. */
async function playStream(response: Response): Promise<{ samples: number; starvedMs: number }> {
  let rate = Number.NaN;
  let samples = 0;
  let starvedMs = 0;
  let driesAtMs: number | undefined;
  for await (const frame of framesOf(response)) {
    if (frame.kind === "error") throw frame.failure;
    if (frame.kind === "head") rate = frame.rate;
    if (frame.kind !== "audio") continue;
    const now = performance.now();
    starvedMs += Math.max(0, now - (driesAtMs ?? now));
    driesAtMs = Math.max(now, driesAtMs ?? now) + (1000 * frame.samples.length) / rate;
    samples += frame.samples.length;
  }
  return { samples, starvedMs };
}

describe("a vLLM that another process runs", () => {
  async function connected(
    change: object,
    more: Partial<GeneratorSettings> = {},
    options: Partial<ModelTierOptions> = {},
  ): Promise<[TinyModelFolder, RunningTier]> {
    const folder = new TinyModelFolder(change);
    const server = { kind: "elsewhere", url: vllmUrl, apiKey } as const;
    const model = { ...settings, server, ...more, folder: folder.path };
    return [folder, await modelTier({ ...options, tier: "arcana", generator: "vllm", model })];
  }

  test("repeats the same audio at temperature 1 if a seed is set", async () => {
    const [folder, other] = await connected({}, { seed: 7 });
    const attempts = [1, 2].map(() =>
      hear(other.url, { ...arcana, sampling: { ...greedy, temperature: 1 } }),
    );
    const [first, second] = await Promise.all(attempts);
    expect(first?.samples).toEqual(second?.samples);
    await other.stop();
    folder.delete();
  });

  test("is refused if its model writes no codes of the codec", async () => {
    const folder = new TinyModelFolder({
      codec: { ...tinyCodec, base: tinyCodec.base - tinyCodec.codebook },
      stop: [0],
    });
    const server = { kind: "elsewhere", url: vllmUrl, apiKey } as const;
    const options = {
      ...settings,
      folder: folder.path,
      server,
      maxStreams: 1,
      host: "127.0.0.1",
      log: quiet,
    };
    await expect(VllmEngine.open(options)).rejects.toThrow("no speech");
    folder.delete();
  });

  test("stops writing tokens when the client disconnects", async () => {
    const relay = await Relay.start(Number(new URL(vllmUrl).port));
    const [folder, other] = await connected({}, { server: { kind: "elsewhere", url: relay.url, apiKey } });
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 3500 };
    for (let attempt = 0; attempt < 5; attempt++) {
      const leave = new AbortController();
      const response = await invoke(other.url, { ...arcana, sampling }, leave.signal);
      expect(response.status).toBe(200);
      const leftAt = performance.now();
      leave.abort();
      // A request that ends without an abort also closes its connection, but earlier.
      const ours = () => relay.hangups.find(({ path, atMs }) => path === "/v1/completions" && atMs > leftAt);
      await eventually("the connection to vLLM is closed", () => ours() !== undefined);
      const soon = await tokensWritten(200);
      const later = await tokensWritten(1000);
      const ourMs = (ours()?.atMs ?? Number.NaN) - leftAt;
      console.log(
        `the connection to vLLM was closed after ${ourMs.toFixed(1)} ms; vLLM wrote this number of tokens in the second after that: ${later - soon}`,
      );
      expect(later).toBe(soon);
    }
    expect((await hear(other.url, arcana)).samples.length).toBeGreaterThan(frameSamples);
    await other.stop();
    await relay.close();
    folder.delete();
  });

  test("leaves at most 5 % of the CPU time to processes other than vLLM and the decoder", async () => {
    const files = await makeTierFiles();
    writeFileSync(join(files.tokenDir, acceptedTokensKey), internalToken);
    const own = await startTierProcess("arcana", files, {
      [names.arcanaGenerator]: "vllm",
      [generatorEnv.modelDir]: model.path,
      [generatorEnv.generatorUrl]: vllmUrl,
      [generatorEnv.generatorApiKey]: apiKey,
      [generatorEnv.hangSeconds]: "60",
      [generatorEnv.capacity]: "8",
      [generatorEnv.codecProcesses]: "1",
    });
    const spent = () => secondsOf(own.pid, childrenWith(`--model ${model.path} `)[0] ?? 0);
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 60 * slots.length };
    const speech = async (streams: number) =>
      Promise.all(
        Array.from({ length: streams }, (_, i) =>
          hear(own.url, { ...arcana, sampling, text: `Number ${i} speaks.` }),
        ),
      );
    await speech(8); // vLLM compiles during these requests.
    const shares: number[] = [];
    for (const streams of [1, 8]) {
      const before = spent();
      const results = [...(await speech(streams)), ...(await speech(streams))];
      const after = spent();
      const ofTier = after.tier - before.tier;
      const all = ofTier + after.others - before.others;
      const audio = results.reduce((sum, { samples }) => sum + samples.length / rate, 0);
      shares.push(ofTier / all);
      console.log(
        `${streams} concurrent: ${((100 * ofTier) / all).toFixed(1)} % of ${all.toFixed(2)} s of CPU time for ${audio.toFixed(1)} s of audio was not spent by vLLM and the decoder`,
      );
    }
    expect(shares[0]).toBeLessThanOrEqual(0.05);
    // The tiny model needs so little time that the share is larger.
    expect(shares[1]).toBeLessThanOrEqual(0.15);
    await own.kill("SIGTERM");
    files.remove();
  }, 300_000);

  test("serves as many streams as its measured capacity without a stall, and rejects one more", async () => {
    // A frame is half a second of audio, so that a busy CPU can write frames for eight streams in time.
    const [folder, other] = await connected(
      { codec: { ...tinyCodec, rate: 4_000 } },
      { capacity: undefined },
      { queueDeadlineMs: 100 },
    );
    const streams = await capacityOf(other);
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 60 * slots.length };
    const ask = (i: number) => invoke(other.url, { ...arcana, sampling, text: `Number ${i} speaks.` });
    const responses = await Promise.all(Array.from({ length: streams + 1 }, (_, i) => ask(i)));
    const accepted = responses.filter(({ status }) => status === 200);
    const playing = accepted.map((response) => playStream(response));
    const rejected = responses.filter(({ status }) => status === 503);
    expect([accepted.length, ...rejected.map(({ headers }) => headers.has("retry-after"))]).toEqual([
      streams,
      true,
    ]);
    const results = await Promise.all(playing);
    logWaits(results);
    for (const { samples, starvedMs } of results) {
      expect(samples).toBeGreaterThan(frameSamples);
      expect(starvedMs).toBeLessThanOrEqual(100);
    }
    await other.stop();
    folder.delete();
  }, 300_000);

  test("has a measured capacity", async () => {
    const [folder, other] = await connected({}, { capacity: undefined });
    expect(await capacityOf(other)).toBeGreaterThan(0);
    await other.stop();
    folder.delete();
  });
});

async function capacityOf({ url }: RunningTier): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith("svc_tts_model_stream_capacity"));
  return Number(line?.split(" ").at(-1) ?? Number.NaN);
}

/** Returns the number of tokens that vLLM has written in total, after a wait. */
async function tokensWritten(afterMs: number): Promise<number> {
  await sleep(systemClock, afterMs, new AbortController().signal);
  return vllmMetric("vllm:generation_tokens_total");
}

/**
 * Returns the CPU time in seconds of the tier with its text processes, and of vLLM with the decoder.
 */
function secondsOf(tierPid: number, vllmPid: number): { tier: number; others: number } {
  const sum = (pids: readonly number[]) => pids.reduce((seconds, pid) => seconds + processorSeconds(pid), 0);
  const decoders = childrenWith("codec/main.ts", tierPid);
  return {
    tier: sum([tierPid, ...childrenWith("espeak/main.ts", tierPid)]),
    others: sum([...decoders, ...withOffspring(vllmPid)]),
  };
}

function withOffspring(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(withOffspring)];
}

describe("a vLLM that is killed under load", () => {
  test("is restarted, and requests fail with 503 until it is ready", async () => {
    const isReady = async () => (await fetch(`${tier.url}/ready`)).ok;
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 3500 };
    const streams = Array.from({ length: 4 }, () => invoke(tier.url, { ...arcana, sampling }));
    const speaking = await Promise.all(streams);
    const [pid = 0] = childrenWith(`--model ${model.path} `);
    const killedAt = performance.now();
    process.kill(pid, "SIGKILL");
    const ends = await Promise.all(speaking.map((response) => lastFrame(response)));
    logDuration(`streams ended with ${ends.join(", ")}`, killedAt);
    for (const end of ends) expect(["model_failed", "end"]).toContain(end);
    await eventually("the model tier is not ready", async () => !(await isReady()));
    expect((await invoke(tier.url, arcana)).status).toBe(503);
    await eventually("the model tier is ready again", isReady);
    logDuration("vLLM was ready again", killedAt);
    expect((await synthesize({})).samples.length).toBeGreaterThan(frameSamples);
  }, 850_000);
});

async function lastFrame(response: Response): Promise<string> {
  let last = "nothing";
  for await (const frame of framesOf(response))
    last = frame.kind === "error" ? frame.failure.code : frame.kind;
  return last;
}
