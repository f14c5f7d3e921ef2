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
import type { TokensManifest } from "../../server/engine/vllm/model/manifest.ts";
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
/** This takes a minute on an idle machine. */
const startSeconds = 800;
const apiKey = "a-key-of-this-test";
const quiet: EngineLog = { info: () => undefined, warn: () => undefined };

/** Settings for one processor, without downloads. */
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
    hangSeconds: 60, // a busy machine is not a failure of vLLM
    capacity: 8,
    seed: undefined,
    codec: { providers: ["cpu"], processes: 1 },
  };
  const startedAt = performance.now();
  tier = await modelTier({ tier: "arcana", generator: "vllm", model: settings });
  tell("vLLM started and spoke", startedAt);
});
afterAll(async () => {
  const startedAt = performance.now();
  await tier.stop();
  tell("vLLM ended", startedAt);
  model.delete();
});

function tell(what: string, sinceMs: number): void {
  console.log(`${what} after ${((performance.now() - sinceMs) / 1000).toFixed(2)} s`);
}

function say(sampling: Partial<typeof greedy>, text: string = arcana.text) {
  return hear(tier.url, { ...arcana, text, sampling: { ...greedy, ...sampling } });
}

/** A metric of vLLM itself. */
async function ofVllm(name: string): Promise<number> {
  const text = await (await fetch(`${vllmUrl}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name}{`));
  return Number(line?.split(" ").at(-1) ?? Number.NaN);
}

describe("arcana on a real vLLM", () => {
  test("says the same each time at temperature 0, and not at 1", async () => {
    const { engine, samples } = await say({});
    expect(engine).toBe("vllm");
    expect(samples.length % frameSamples).toBe(0);
    expect(samples.length).toBeGreaterThan(5 * frameSamples);
    expect((await say({})).samples).toEqual(samples);
    const takes = [await say({ temperature: 1 }), await say({ temperature: 1 })];
    expect(takes[0]?.samples).not.toEqual(takes[1]?.samples);
  });

  test("top_p, the penalty and max_tokens act on it", async () => {
    const { samples } = await say({});
    // only the most likely token remains
    expect((await say({ temperature: 1, topP: 1e-6 })).samples).toEqual(samples);
    expect((await say({ repetitionPenalty: 1 })).samples).not.toEqual(samples);
    const short = (await say({ maxTokens: 5 * slots.length + 3 })).samples;
    expect(short.length).toBe(5 * frameSamples);
    const same = 3 * frameSamples; // later frames affect the sound of the last ones
    expect(short.slice(0, same)).toEqual(samples.slice(0, same));
  });

  test("every voice and text is said otherwise", async () => {
    const { samples } = await say({});
    expect((await hear(tier.url, { ...arcana, speaker: "astra" })).samples).not.toEqual(samples);
    expect((await say({}, "Hello there two.")).samples).not.toEqual(samples);
  });

  test("markup of special tokens in a text is letters", async () => {
    const before = await ofVllm("vllm:prompt_tokens_total");
    const text = "Say <|eot_id|> now.";
    expect((await say({}, text)).samples.length).toBeGreaterThan(frameSamples);
    await eventually(
      "its tokens are counted",
      async () => (await ofVllm("vllm:prompt_tokens_total")) > before,
    );
    const perLetter = (await ofVllm("vllm:prompt_tokens_total")) - before - 5;
    expect(perLetter).toBeGreaterThanOrEqual("voice-luna: ".length + "Say <|eot_id|> now.".length);
  });

  test("sounds as its codes do when they are decoded at once", async () => {
    const { samples } = await say({});
    const whole = await decodedAtOnce(model.path, await written(arcana.text));
    expect(samples.length).toBe(whole.length);
    expect(seamError(whole, samples)).toBeLessThanOrEqual(0.005);
  });

  test("eight streams at once all finish, and each says what it says alone", async () => {
    const { samples } = await say({});
    const startedAt = performance.now();
    const heard = await Promise.all(
      Array.from({ length: 8 }, async () => listen(await invoke(tier.url, arcana))),
    );
    tell(`eight times ${(samples.length / rate).toFixed(2)} s of sound were there`, startedAt);
    tellWaits(heard);
    for (const stream of heard) expect(stream.samples).toBe(samples.length);
  });
});

/** The output of vLLM itself at temperature 0. */
async function written(text: string): Promise<number[]> {
  const { tokenize, manifest } = (await readModelFolder(model.path)) as {
    tokenize: Tokenize;
    manifest: TokensManifest;
  };
  const body = {
    model: servedName,
    prompt: tokenize("voice-luna", text),
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
  const answer = await fetch(`${vllmUrl}/v1/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const { choices } = (await answer.json()) as { choices: { token_ids: number[] }[] };
  return (choices[0]?.token_ids ?? []).filter((token) => !manifest.stop.includes(token));
}

function tellWaits(heard: readonly { starvedMs: number }[]): void {
  const waits = heard.map(({ starvedMs }) => Math.round(starvedMs));
  console.log(`waits beyond the first of ${heard.length} at once, ms: ${waits.join(" ")}`);
}

/** The total time that playback would stall after the first audio, if it starts immediately. */
async function listen(response: Response): Promise<{ samples: number; starvedMs: number }> {
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

describe("a vLLM that runs elsewhere", () => {
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

  test("a seed makes speech repeatable at any temperature", async () => {
    const [folder, other] = await connected({}, { seed: 7 });
    const takes = [1, 2].map(() => hear(other.url, { ...arcana, sampling: { ...greedy, temperature: 1 } }));
    const [first, second] = await Promise.all(takes);
    expect(first?.samples).toEqual(second?.samples);
    await other.stop();
    folder.delete();
  });

  test("a model whose codes are none of the codec's is a model that fails", async () => {
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

  test("a client that disconnects stops it", async () => {
    const relay = await Relay.start(Number(new URL(vllmUrl).port));
    const [folder, other] = await connected({}, { server: { kind: "elsewhere", url: relay.url, apiKey } });
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 3500 };
    for (let take = 0; take < 5; take++) {
      const leave = new AbortController();
      const response = await invoke(other.url, { ...arcana, sampling }, leave.signal);
      expect(response.status).toBe(200);
      const leftAt = performance.now();
      leave.abort();
      // the connection of a request that ended by itself was already closed
      const ours = () => relay.hangups.find(({ path, atMs }) => path === "/v1/completions" && atMs > leftAt);
      await eventually("its connection is closed", () => ours() !== undefined);
      const soon = await tokensWritten(200);
      const later = await tokensWritten(1000);
      const ourMs = (ours()?.atMs ?? Number.NaN) - leftAt;
      console.log(
        `vLLM was notified after ${ourMs.toFixed(1)} ms; tokens written from 0.2 s to 1.2 s after the end: ${later - soon}`,
      );
      expect(later).toBe(soon);
    }
    expect((await hear(other.url, arcana)).samples.length).toBeGreaterThan(frameSamples);
    await other.stop();
    await relay.close();
    folder.delete();
  });

  test("all parts except vLLM and the decoder take at most a twentieth of the work of a stream", async () => {
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
    await speech(8); // everything was compiled before
    const shares: number[] = [];
    for (const streams of [1, 8]) {
      const before = spent();
      const heard = [...(await speech(streams)), ...(await speech(streams))];
      const after = spent();
      const ofUs = after.tier - before.tier;
      const all = ofUs + after.others - before.others;
      const audio = heard.reduce((sum, { samples }) => sum + samples.length / rate, 0);
      shares.push(ofUs / all);
      console.log(
        `${streams} at once: ${((100 * ofUs) / all).toFixed(1)} % of ${all.toFixed(2)} s of processor time for ${audio.toFixed(1)} s of sound are neither vLLM's nor the decoder's`,
      );
    }
    expect(shares[0]).toBeLessThanOrEqual(0.05);
    expect(shares[1]).toBeLessThanOrEqual(0.15); // the cost of this tiny model for vLLM is negligible
    await own.kill("SIGTERM");
    files.remove();
  }, 300_000);

  test("as many streams as its measured capacity have no gap, and one more is rejected", async () => {
    // a frame is half a second of audio, which a busy processor can write for eight streams
    const [folder, other] = await connected(
      { codec: { ...tinyCodec, rate: 4_000 } },
      { capacity: undefined },
      { queueDeadlineMs: 100 },
    );
    const streams = await capacityOf(other);
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 60 * slots.length };
    const ask = (i: number) => invoke(other.url, { ...arcana, sampling, text: `Number ${i} speaks.` });
    const answers = await Promise.all(Array.from({ length: streams + 1 }, (_, i) => ask(i)));
    const listeners = answers.filter(({ status }) => status === 200);
    const listening = listeners.map((response) => listen(response));
    const refused = answers.filter(({ status }) => status === 503);
    expect([listeners.length, ...refused.map(({ headers }) => headers.has("retry-after"))]).toEqual([
      streams,
      true,
    ]);
    const heard = await Promise.all(listening);
    tellWaits(heard);
    for (const { samples, starvedMs } of heard) {
      expect(samples).toBeGreaterThan(frameSamples);
      expect(starvedMs).toBeLessThanOrEqual(100);
    }
    await other.stop();
    folder.delete();
  }, 300_000);

  test("how many streams it takes is measured", async () => {
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

/** The number of tokens that vLLM writes after a while. */
async function tokensWritten(afterMs: number): Promise<number> {
  await sleep(systemClock, afterMs, new AbortController().signal);
  return ofVllm("vllm:generation_tokens_total");
}

/** The processor time in seconds so far: the tier with its text processes, and vLLM with the decoder. */
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
  test("recovers, and requests fail quickly until then", async () => {
    const isReady = async () => (await fetch(`${tier.url}/ready`)).ok;
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 3500 };
    const streams = Array.from({ length: 4 }, () => invoke(tier.url, { ...arcana, sampling }));
    const speaking = await Promise.all(streams);
    const [pid = 0] = childrenWith(`--model ${model.path} `);
    const killedAt = performance.now();
    process.kill(pid, "SIGKILL");
    const ends = await Promise.all(speaking.map((response) => lastFrame(response)));
    tell(`streams ended with ${ends.join(", ")}`, killedAt);
    for (const end of ends) expect(["model_failed", "end"]).toContain(end);
    await eventually("it is not ready", async () => !(await isReady()));
    expect((await invoke(tier.url, arcana)).status).toBe(503);
    await eventually("it is ready again", isReady);
    tell("vLLM was back", killedAt);
    expect((await say({})).samples.length).toBeGreaterThan(frameSamples);
  }, 850_000);
});

async function lastFrame(response: Response): Promise<string> {
  let last = "nothing";
  for await (const frame of framesOf(response))
    last = frame.kind === "error" ? frame.failure.code : frame.kind;
  return last;
}
