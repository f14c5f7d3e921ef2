import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Invocation } from "../../../../server/contract/speech.ts";
import type { WireFrame } from "../../../../server/contract/wire.ts";
import { Engines, type MountSettings } from "../../../../server/engine/engines.ts";
import type { EngineLog } from "../../../../server/engine/runtime/engine.ts";
import { VllmEngine } from "../../../../server/engine/vllm/engine.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import {
  decodedAtOnce,
  seamError,
  type TinyModelFolder,
  tinyManifest,
} from "../../../support/generator/model-folder.ts";
import { ScriptedVllm } from "../../../support/generator/scripted-vllm.ts";
import { tinyCodec } from "../../../support/generator/tiny-model.ts";
import { leasePort } from "../../../support/port-lease.ts";
import { childrenWith, processGone } from "../../../support/processes.ts";
import type { Script } from "../../../support/scripted-vllm/main.ts";
import { coldModelTier, framesOf, hear, invoke, modelTier } from "../../../support/server/model-tier.ts";

const { frameSamples, slots } = tinyCodec;
const frameTokens = slots.length;
const usual = { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 10 * frameTokens };
const arcana: Partial<Invocation> = {
  modelId: "arcana",
  speaker: "luna",
  text: "Hello there.",
  sampling: usual,
};
const ownerFile = fileURLToPath(new URL("../../../support/engine-programs/main.ts", import.meta.url));

let vllm: ScriptedVllm;
let tier: RunningTier;
beforeAll(async () => {
  vllm = await ScriptedVllm.create();
  tier = await modelTier({ tier: "arcana", generator: "vllm", model: vllm.settings });
});
afterAll(async () => {
  await tier.stop();
  vllm.delete();
});
beforeEach(async () => {
  await eventually("a ready tier", () => isReady());
  await vllm.script({ does: "speak" });
});

async function isReady({ url } = tier): Promise<boolean> {
  return (await fetch(`${url}/ready`)).ok;
}

/** Returns the sum of all series with the name (and the labels, if it has any) in the metrics of the tier. */
async function metric(name: string, { url } = tier): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(name));
  expect(lines, name).not.toEqual([]);
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/**
 * Waits until the generator was restarted and the tier is ready. The time without readiness may be too short
 * to observe.
 * @param restarts the number of earlier restarts
 */
async function untilRestarted(restarts: number, which = tier): Promise<void> {
  await eventually(
    "a restart of the generator",
    async () => (await metric("svc_tts_engine_restarts_total", which)) > restarts,
  );
  await eventually("a ready tier", () => isReady(which));
}

async function framesIn(response: Response): Promise<WireFrame[]> {
  const frames: WireFrame[] = [];
  for await (const frame of framesOf(response)) frames.push(frame);
  return frames;
}

describe("arcana with a model that vLLM serves", () => {
  test("synthesizes as many frames as max_tokens allows, at the codec's rate", async () => {
    const { engine, rate, samples } = await hear(tier.url, arcana);
    expect([engine, rate, samples.length]).toEqual(["vllm", 24_000, 10 * frameSamples]);
    expect(samples.some((sample) => Math.abs(sample) > 100)).toBe(true);
  });

  test("sends token ids and every sampling value", async () => {
    await hear(tier.url, {
      ...arcana,
      text: "Ask <|eot_id|> me.",
      sampling: { ...usual, topP: 0.9, temperature: 0 },
    });
    const last = (await vllm.asked()).asked.at(-1);
    expect(last).toMatchObject({
      temperature: 0,
      top_p: 0.9,
      repetition_penalty: 1.5,
      max_tokens: usual.maxTokens,
      top_k: 0,
      stop_token_ids: [258],
      allowed_token_ids: [...Array.from({ length: 448 }, (_, i) => 264 + i), 258],
    });
    expect(String.fromCharCode(...(last?.prompt.slice(2, -3) ?? []))).toMatch(/^voice-luna: Ask .*me\.$/u);
  });

  test("rejects a lexicon, because its prompt cannot contain pronunciations", async () => {
    const answer = await invoke(tier.url, { ...arcana, lexicon: { hello: "h0xl1o" } });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code: "invalid_request" });
  });

  test("applies max_tokens to each phrase", async () => {
    const { samples } = await hear(tier.url, {
      ...arcana,
      text: "One sentence is here. Another one is near.",
    });
    expect(samples.length).toBe(20 * frameSamples + Math.round(0.35 * 24_000)); // This includes the pause between the phrases.
  });

  test("has nearly the same audio as if all codes were decoded together, although decoding starts early", async () => {
    // This rate is 1.5 times real time, so that the lengths of the decoded windows vary.
    await vllm.script({ does: "speak", tokensPerSecond: 120 });
    const { samples } = await hear(tier.url, {
      ...arcana,
      sampling: { ...usual, maxTokens: 15 * frameTokens },
    });
    const whole = await decodedAtOnce(vllm.model.path, (await vllm.asked()).lastWritten);
    expect(samples.length).toBe(whole.length);
    expect(seamError(whole, samples)).toBeLessThanOrEqual(0.005);
  });

  test("estimates the time of each word within the audio of its phrase", async () => {
    await vllm.script({ does: "speak", mostTokens: 8 * frameTokens });
    const text = "One sentence is here. Another is near.";
    const { samples, words } = await hear(tier.url, { ...arcana, text });
    expect(words.map(({ word }) => word)).toEqual(["One", "sentence", "is", "here", "Another", "is", "near"]);
    const phraseSeconds = (8 * frameSamples) / 24_000;
    for (const [i, { start, end }] of words.entries()) {
      expect(end).toBeGreaterThan(start);
      if (i > 0) expect(start).toBeGreaterThanOrEqual(words[i - 1]?.end ?? 0);
    }
    expect(words[0]?.start).toBeCloseTo(0, 1);
    expect(words[3]?.end).toBeCloseTo(phraseSeconds, 1);
    expect(words[4]?.start).toBeCloseTo(phraseSeconds + 0.35, 1); // The word begins after the pause.
    expect(words[6]?.end).toBeCloseTo(samples.length / 24_000, 1);
  });

  test("has no word timestamps for a phrase that max_tokens shortened", async () => {
    const { samples, words } = await hear(tier.url, arcana);
    expect([samples.length, words]).toEqual([10 * frameSamples, []]);
  });

  test("changes its speed as requested", async () => {
    const { samples } = await hear(tier.url, { ...arcana, stretch: 1.5 });
    expect(samples.length).toBe(Math.round(1.5 * 10 * frameSamples));
  });

  test("generates the next phrase while the client receives the previous phrase", async () => {
    const before = (await vllm.asked()).asked.length;
    const sampling = { ...usual, maxTokens: 300 * frameTokens };
    const client = new AbortController();
    const text = "One sentence is here. Another one is near. A third one is behind.";
    await invoke(tier.url, { ...arcana, text, sampling }, client.signal);
    // The client does not read, so the kernel's buffers determine whether the third phrase is requested.
    await eventually(
      "the requests of two phrases",
      async () => (await vllm.asked()).asked.length >= before + 2,
    );
    client.abort();
    await eventually("no phrase in progress", async () => (await metric("svc_tts_generator_phrases")) === 0);
  });

  test("stops the generator when a client disconnects", async () => {
    await vllm.script({ does: "speak", tokensPerSecond: 200 });
    const aborted = await metric("svc_tts_generator_aborted_total");
    const client = new AbortController();
    const response = await invoke(
      tier.url,
      { ...arcana, sampling: { ...usual, maxTokens: 5000 } },
      client.signal,
    );
    expect(response.status).toBe(200);
    expect((await vllm.asked()).running).toBe(1);
    client.abort();
    await eventually("no running generation", async () => (await vllm.asked()).running === 0);
    await eventually(
      "the aborted generation in the metrics",
      async () => (await metric("svc_tts_generator_aborted_total")) === aborted + 1,
    );
  });

  test("finishes eight concurrent streams", async () => {
    await vllm.script({ does: "speak", tokensPerSecond: 400 });
    const speeches = await Promise.all(Array.from({ length: 8 }, () => hear(tier.url, arcana)));
    for (const { samples } of speeches) expect(samples.length).toBe(10 * frameSamples);
  });
});

describe("a generator that fails", () => {
  const nonsense = 'svc_tts_generator_troubles_total{kind="nonsense"}';

  test.each([
    ["generates invalid tokens", "nonsense"],
    ["generates no speech", "no speech"],
  ] as const)("gets a second request if it %s once", async (_, does) => {
    const failuresBefore = await metric(nonsense);
    await vllm.script({ does, times: 1 });
    expect((await hear(tier.url, arcana)).samples.length).toBe(10 * frameSamples);
    expect(await metric(nonsense)).toBe(failuresBefore + 1);
  });

  test("causes a 502 if its output is invalid twice, or if it rejects the request", async () => {
    const dropped = await metric("svc_tts_generator_dropped_tokens_total");
    await vllm.script({ does: "nonsense" });
    expect((await invoke(tier.url, arcana)).status).toBe(502);
    expect(await metric("svc_tts_generator_dropped_tokens_total")).toBeGreaterThan(dropped);
    await vllm.script({ does: "refuse" });
    expect((await invoke(tier.url, arcana)).status).toBe(502);
  });

  test("causes an error only in the stream with the interrupted connection", async () => {
    const sampling = { ...usual, maxTokens: 40 * frameTokens };
    await vllm.script({ does: "break off", times: 1, tokensPerSecond: 400 });
    const broken = invoke(tier.url, { ...arcana, sampling });
    await eventually("the running generation", async () => (await vllm.asked()).running === 1);
    const other = hear(tier.url, arcana);
    const frames = await framesIn(await broken);
    expect(frames.at(0)?.kind).toBe("head");
    expect(frames.at(-1)).toMatchObject({ kind: "error", failure: { code: "model_failed" } });
    expect((await other).samples.length).toBe(10 * frameSamples);
  });

  test("causes errors of its streams if it runs out of memory, and then recovers", async () => {
    const restarts = await metric("svc_tts_engine_restarts_total");
    await vllm.script({ does: "out of memory", tokensPerSecond: 400 });
    const sampling = { ...usual, maxTokens: 40 * frameTokens };
    const speaking = await Promise.all([1, 2].map(() => invoke(tier.url, { ...arcana, sampling })));
    const ends = await Promise.all(speaking.map((response) => framesIn(response)));
    for (const frames of ends)
      expect(frames.at(-1)).toMatchObject({ kind: "error", failure: { code: "model_failed" } });
    await untilRestarted(restarts);
    expect((await hear(tier.url, arcana)).samples.length).toBe(10 * frameSamples);
    expect(await metric("svc_tts_engine_restarts_total")).toBe(restarts + 1);
  });

  test("makes the tier respond with 503 and Retry-After from its death until its restart", async () => {
    const restarts = await metric("svc_tts_engine_restarts_total");
    await vllm.script({ does: "die" });
    const answer = await invoke(tier.url, arcana);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "15"]);
    // The tier continues to run, because a restart of the container would take longer.
    expect((await fetch(`${tier.url}/readyz`)).status).toBe(200);
    await untilRestarted(restarts);
    expect((await hear(tier.url, arcana)).samples.length).toBe(10 * frameSamples);
  });

  test("interrupts no stream if only a codec process dies", async () => {
    const [pid = 0] = childrenWith("codec/main.ts");
    await vllm.script({ does: "speak", tokensPerSecond: 200 });
    const speech = hear(tier.url, { ...arcana, sampling: { ...usual, maxTokens: 40 * frameTokens } });
    await eventually("the running generation", async () => (await vllm.asked()).running === 1);
    process.kill(pid, "SIGKILL");
    expect((await speech).samples.length).toBe(40 * frameSamples);
  });
});

describe("a tier with short time limits", () => {
  let slow: ScriptedVllm;
  let impatient: RunningTier;
  let reader: number;
  beforeAll(async () => {
    slow = await ScriptedVllm.create();
    const model = { ...slow.settings, hangSeconds: 2, timesWithinMs: 500 };
    const others = childrenWith("espeak/main.ts");
    impatient = await modelTier({ tier: "arcana", generator: "vllm", model });
    [reader = 0] = childrenWith("espeak/main.ts").filter((pid) => !others.includes(pid));
  });
  afterAll(async () => {
    await impatient.stop();
    slow.delete();
  });

  test("repeats a request once if the generator hangs", async () => {
    const unreachableCount = () => metric('svc_tts_generator_troubles_total{kind="away"}', impatient);
    const failuresBefore = await unreachableCount();
    await slow.script({ does: "hang", times: 1 });
    expect((await hear(impatient.url, arcana)).samples.length).toBe(10 * frameSamples);
    expect(await unreachableCount()).toBe(failuresBefore + 1);
  });

  test("restarts a generator that hangs on every request", async () => {
    const restarts = await metric("svc_tts_engine_restarts_total", impatient);
    await slow.script({ does: "freeze" });
    expect((await invoke(impatient.url, arcana)).status).toBe(503);
    await untilRestarted(restarts, impatient);
    expect((await hear(impatient.url, arcana)).samples.length).toBe(10 * frameSamples);
  });

  test("ends speech without word timestamps if the word lengths do not arrive in time", async () => {
    const short = { ...arcana, sampling: { ...usual, maxTokens: 40 * frameTokens } };
    const ending: Script = { does: "speak", mostTokens: 20 * frameTokens };
    await vllm.script(ending);
    expect((await hear(tier.url, short)).words).not.toEqual([]);
    await slow.script(ending);
    process.kill(reader, "SIGSTOP");
    try {
      const { words, samples } = await hear(impatient.url, short);
      expect([words.length, samples.length]).toEqual([0, 20 * frameSamples]);
    } finally {
      process.kill(reader, "SIGCONT");
    }
  });
});

describe("a vLLM process that the tier starts", () => {
  const lines: { fields: object; message: string }[] = [];
  const log: EngineLog = {
    info: (fields, message) => lines.push({ fields, message }),
    warn: (fields, message) => lines.push({ fields, message }),
  };

  async function open(scripted: ScriptedVllm, change: object = {}, host = "127.0.0.1"): Promise<VllmEngine> {
    return VllmEngine.open({ ...scripted.settings, ...change, maxStreams: 4, host, log });
  }

  test("logs in the server's format, exposes only its metrics, and ends at a stop", async () => {
    const own = await ScriptedVllm.create();
    const metricsPort = await leasePort();
    const server = { ...own.settings.server, metricsPort };
    const engine = await open(own, { server }, "0.0.0.0");
    // Only the metrics are reachable from the network.
    const send = (path: string, method = "GET") =>
      fetch(`http://127.0.0.1:${metricsPort}${path}`, { method });
    const answer = await send("/metrics");
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/plain"]);
    expect(await answer.text()).toBe("vllm:num_requests_running 0\n");
    const hidden = ["/asked", "/health", "/tokenize", "/v1/completions", "/metrics/../asked", "/metrics?x"];
    for (const path of hidden) expect([path, (await send(path)).status]).toEqual([path, 404]);
    expect((await send("/metrics", "POST")).status).toBe(405);
    expect(lines.some(({ message }) => message.includes("listening on 127.0.0.1"))).toBe(true);
    const line = lines.find(({ message }) => message.includes("listening"));
    expect(line?.fields).toMatchObject({ from: "vllm" });
    const { pid = 0 } = (line?.fields ?? {}) as { pid?: number };
    await engine.close();
    expect(lines.some(({ message }) => message.includes("Shutting down"))).toBe(true);
    expect(processGone(pid)).toBe(true);
    own.delete();
  });

  test("is stopped if a later step of the start fails", async () => {
    const own = await ScriptedVllm.create();
    const model = { ...own.settings, maxStreams: 4, host: "127.0.0.1" };
    const broken = {
      get folder(): string {
        throw new Error("the folder cannot be read");
      },
    } as MountSettings;
    const before = childrenWith("codec/main.ts");
    await expect(Engines.open({ processes: 1, log, model }, broken)).rejects.toThrow(
      "the folder cannot be read",
    );
    expect(childrenWith(own.model.path)).toEqual([]);
    expect(childrenWith("codec/main.ts")).toEqual(before);
    own.delete();
  });

  test("ends when its owner is killed", async () => {
    const own = await ScriptedVllm.create();
    const owner = spawn(process.execPath, [ownerFile, "generator-owner", JSON.stringify(own.settings)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(createInterface({ input: owner.stdout }), "line")) as [string];
    const pids = JSON.parse(line) as number[];
    expect(pids.map((pid) => processGone(pid))).toEqual([false, false]);
    owner.kill("SIGKILL");
    await eventually("the end of both processes", () => pids.every((pid) => processGone(pid)));
    own.delete();
  });

  test("allows the measured number of concurrent streams", async () => {
    const own = await ScriptedVllm.create();
    const engine = await open(own, { capacity: undefined });
    expect(engine.realTimeStreams).toBeGreaterThanOrEqual(1);
    expect(lines.some(({ fields }) => "vllmStreams" in fields && "decoderStreams" in fields)).toBe(true);
    await engine.close();
    own.delete();
  });

  test("allows one stream if it is slower than real time, and logs this", async () => {
    const own = await ScriptedVllm.create();
    const slow: Script = { does: "speak", tokensPerSecond: 70 };
    const server = { ...own.settings.server, environment: { SCRIPT: JSON.stringify(slow) } };
    const engine = await open(own, { server, capacity: undefined });
    expect(engine.realTimeStreams).toBe(1);
    expect(lines.at(-1)?.message).toContain("slower than real time");
    await engine.close();
    own.delete();
  });

  test("gets a second phrase if its first phrase is silent, and fails if both are silent", async () => {
    const own = await ScriptedVllm.create();
    const silent = (times: number) => {
      const script: Script = { does: "no speech", times };
      return { server: { ...own.settings.server, environment: { SCRIPT: JSON.stringify(script) } } };
    };
    await (await open(own, silent(1))).close();
    await expect(open(own, silent(2))).rejects.toThrow("no speech");
    own.delete();
  });

  test("is started three times if it exits with an error, and its output is logged", async () => {
    const own = await ScriptedVllm.create();
    const cudaError = "torch.OutOfMemoryError: CUDA out of memory.";
    own.model.write(".vllm", `#!/bin/sh\necho "ERROR 11-22 01:00:00 [core.py:1] ${cudaError}" >&2\nexit 1\n`);
    const program = join(own.model.path, ".vllm");
    chmodSync(program, 0o755);
    await expect(open(own, { server: { ...own.settings.server, program } })).rejects.toThrow("status 1");
    expect(lines.filter(({ message }) => message.includes(cudaError)).length).toBe(3);
    own.delete();
  });

  test.each([
    ["that is missing", "manifest.json cannot be read", (folder: TinyModelFolder) => folder.delete()],
    [
      "with another digest",
      "model.safetensors: the sha256 of the file is",
      (folder: TinyModelFolder) => folder.write("model.safetensors", "x"),
    ],
    [
      "of an unknown kind",
      'manifest.json: /kind must be tokens or audio; it is "video"',
      (folder: TinyModelFolder) => folder.write("manifest.json", '{"kind":"video"}'),
    ],
  ])("with a model %s causes an error, and the tier is not ready", async (_, message, spoil) => {
    const own = await ScriptedVllm.create();
    spoil(own.model);
    const cold = await coldModelTier({ tier: "arcana", generator: "vllm", model: own.settings });
    await expect(cold.warmed).rejects.toThrow(`${own.model.path}: ${message}`);
    expect((await fetch(`${cold.url}/ready`)).status).toBe(503);
    expect((await invoke(cold.url, arcana)).status).toBe(503);
    await cold.stop();
    own.delete();
  });

  test("needs no codec if its model generates samples", async () => {
    const own = await ScriptedVllm.create();
    const { license, voices } = tinyManifest;
    const { sha256 } = own.model;
    own.model.write(
      "manifest.json",
      JSON.stringify({ kind: "audio", license, voices, sha256, rate: 24_000 }),
    );
    const engine = await open(own);
    const token = { text: "Hello", before: "", after: ".", stretch: 1 };
    const utterance = {
      voice: { kind: "generated", name: "any" },
      tokens: [token],
      stretch: 1,
    } as const;
    const received: number[] = [];
    const never = new AbortController().signal;
    for await (const { samples } of engine.speak(utterance, never)) received.push(...samples);
    expect(received).toEqual(Array.from({ length: 24_000 }, (_, i) => i));
    await engine.close();
    own.delete();
  });

  test("causes an error that names a missing program or a missing file of the model", async () => {
    const own = await ScriptedVllm.create();
    const program = `${own.model.path}/no-vllm`;
    const server = {
      kind: "here",
      program,
      args: [],
      environment: {},
      port: undefined,
      apiKey: undefined,
    } as const;
    await expect(open(own, { server })).rejects.toThrow(`the program ${program} was not found`);
    own.model.remove("decoder.onnx");
    await expect(open(own)).rejects.toThrow(`${own.model.path}: decoder.onnx cannot be read`);
    own.delete();
  });
});
