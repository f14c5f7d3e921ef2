import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineLog } from "../../server/engine/engine.ts";
import { GeneratorEngine } from "../../server/engine/generator/engine.ts";
import type { GeneratorSettings } from "../../server/engine/generator/settings.ts";
import { freePort } from "../../server/engine/generator/vllm-process.ts";
import type { RunningTier } from "../../server/model/tier.ts";
import { eventually } from "../support/api-tier.ts";
import { TinyModelFolder } from "../support/generator/model-folder.ts";
import { tinyCodec } from "../support/generator/tiny-codec.ts";
import { framesOf, hear, invoke, modelTier } from "../support/model-tier.ts";
import { childrenWith } from "../support/processes.ts";

const run = promisify(execFile);
const { frameSamples, slots, rate } = tinyCodec;
const greedy = { repetitionPenalty: 1.1, temperature: 0, topP: 1, maxTokens: 20 * slots.length };
const arcana = { modelId: "arcana", speaker: "luna", text: "Hello there you.", sampling: greedy } as const;
/** A minute on a quiet machine. */
const startSeconds = 800;
const apiKey = "a-key-of-this-test";
const quiet: EngineLog = { info: () => undefined, warn: () => undefined };

/** For one processor, and with nothing looked up elsewhere. */
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
  const port = await freePort();
  vllmUrl = `http://127.0.0.1:${port}`;
  settings = {
    folder: model.path,
    server: { kind: "here", program: stdout.trim(), args: [], environment, port, apiKey },
    startSeconds,
    hangSeconds: 60, // a busy machine is no fault of vLLM's
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

/** A metric of vLLM's own. */
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
    expect((await say({ temperature: 1, topP: 1e-6 })).samples).toEqual(samples); // only the likeliest is left
    expect((await say({ repetitionPenalty: 1 })).samples).not.toEqual(samples);
    const short = (await say({ maxTokens: 5 * slots.length + 3 })).samples;
    expect(short.length).toBe(5 * frameSamples);
    const same = 3 * frameSamples; // what comes after the last frames is heard in them
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

  test("a caller who hangs up stops it", async () => {
    const leave = new AbortController();
    const sampling = { ...greedy, repetitionPenalty: 1, maxTokens: 3500 };
    const response = await invoke(tier.url, { ...arcana, sampling }, leave.signal);
    expect(response.status).toBe(200);
    expect(await ofVllm("vllm:num_requests_running")).toBe(1);
    const leftAt = performance.now();
    leave.abort();
    await eventually("nothing runs", async () => (await ofVllm("vllm:num_requests_running")) === 0);
    tell("vLLM had nothing to do", leftAt);
    const written = await ofVllm("vllm:generation_tokens_total");
    expect((await say({})).samples.length).toBeGreaterThan(frameSamples);
    expect((await ofVllm("vllm:generation_tokens_total")) - written).toBeLessThan(30 * slots.length);
  });

  test("eight streams at once all finish, and each says what it says alone", async () => {
    const { samples } = await say({});
    const startedAt = performance.now();
    const heard = await Promise.all(Array.from({ length: 8 }, () => listen()));
    tell(`eight times ${(samples.length / rate).toFixed(2)} s of sound were there`, startedAt);
    console.log(
      `waits beyond the first, ms: ${heard.map(({ starvedMs }) => Math.round(starvedMs)).join(" ")}`,
    );
    for (const stream of heard) expect(stream.samples).toBe(samples.length);
  });
});

/** How long a listener who plays at once waits in all after the first sound. */
async function listen(): Promise<{ samples: number; starvedMs: number }> {
  let samples = 0;
  let starvedMs = 0;
  let driesAtMs: number | undefined;
  for await (const frame of framesOf(await invoke(tier.url, arcana))) {
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
  ): Promise<[TinyModelFolder, RunningTier]> {
    const folder = new TinyModelFolder(change);
    const server = { kind: "elsewhere", url: vllmUrl, apiKey } as const;
    const model = { ...settings, ...more, folder: folder.path, server };
    return [folder, await modelTier({ tier: "arcana", generator: "vllm", model })];
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
    await expect(GeneratorEngine.open(options)).rejects.toThrow("no speech");
    folder.delete();
  });

  test("how many streams it takes is measured", async () => {
    const folder = new TinyModelFolder();
    const server = { kind: "elsewhere", url: vllmUrl, apiKey } as const;
    const told: object[] = [];
    const log = { info: (fields: object) => told.push(fields), warn: (fields: object) => told.push(fields) };
    const options = {
      ...settings,
      folder: folder.path,
      server,
      capacity: undefined,
      maxStreams: 8,
      host: "127.0.0.1",
      log,
    };
    const engine = await GeneratorEngine.open(options);
    console.log(`measured: ${JSON.stringify(told)}`);
    expect(engine.realTimeStreams).toBeGreaterThanOrEqual(1);
    await engine.close();
    folder.delete();
  });
});

describe("a vLLM that is killed under load", () => {
  test("is back by itself, and meanwhile nobody waits for nothing", async () => {
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
    await eventually("it is ready again", isReady, 1000 * startSeconds);
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
