import { readFileSync, writeFileSync } from "node:fs";
import { env as names } from "../../config/contract/names.ts";
import type { Command, OptionValues, Shell } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { climb, holds } from "../bench/ladder.ts";
import { type GpuStep, ladderTable } from "../bench/ladder-table.ts";
import { type Load, runLoad } from "../bench/load.ts";
import { PlainVllm } from "../bench/plain-vllm.ts";
import { plotRuns } from "../bench/plot.ts";
import { type Report, summarizeRun } from "../bench/report.ts";
import { renderSockets } from "../bench/sockets/socket-table.ts";
import type { StreamRecord } from "../bench/stream.ts";
import { renderRun } from "../bench/table.ts";
import {
  type EventFormat,
  eventFormatTypes,
  eventStream,
  openaiTypes,
  type Target,
} from "../bench/target.ts";
import { defaultTexts } from "../bench/texts.ts";
import { measureSockets, plotSeries, readSocketTarget, socketNotes, socketOptions } from "./bench-sockets.ts";

const maxTextFileBytes = 16 * 1024 * 1024;
const progressMs = 2_000;

export const benchCommand: Command = {
  name: "bench",
  summary: "load a server with concurrent streams, and report latency, real-time factor and starved streams",
  options: {
    url: { value: "URL", help: "URL of the server, or of its speech route", required: true },
    key: { value: "KEY", help: `API key; default: the value of ${names.apiKey}` },
    streams: { value: "N", help: "concurrent streams", default: "4" },
    seconds: { value: "T", help: "duration in seconds", default: "20" },
    model: { value: "ID", help: "model", default: "mist" },
    voice: { value: "ID", help: "voice", default: "alan" },
    accept: { value: "TYPE", help: "an audio type, or text/event-stream", default: "audio/pcm" },
    format: { value: "NAME", help: "audio format of events: mp3, mulaw or pcm", default: "pcm" },
    rate: { value: "HZ", help: "sampling rate to request; with --openai the rate of the raw audio" },
    text: { value: "FILE", help: "texts to synthesize, one per line; default: built-in sentences" },
    openai: { help: "use the OpenAI-compatible API: POST /v1/audio/speech" },
    gpu: {
      help: "find how many streams a GPU can serve: measure for --seconds at each number in --steps, and at numbers between them",
    },
    steps: { value: "N,N", help: "with --gpu: streams to try, in ascending order", default: "1,8,32,64,128" },
    gpus: { value: "N", help: "with --gpu: number of GPUs of the server", default: "1" },
    vllm: {
      value: "URL",
      help: "with --gpu: URL of the server's vLLM, to count its tokens and to measure vLLM directly",
    },
    ...socketOptions,
    json: { value: "FILE", help: "write the results as JSON" },
    svg: { value: "FILE", help: "write a plot" },
  },
  notes: [
    "The time to first audio includes the connection, and ends at the first byte of audio after any header.",
    "A stream is starved if a player that starts with the first audio waits more than 100 ms in total.",
    "Streams that are running when the time ends are aborted, and count as unfinished. The command fails if no stream completes.",
    "With --gpu, a number of streams passes if no stream fails, and the 99th percentiles are at most 1000 ms to first audio and a real-time factor of 1.",
    socketNotes,
  ].join("\n"),
  run: runBench,
};

async function runBench(shell: Shell, options: OptionValues): Promise<number> {
  const target = readTarget(options, shell);
  const load = { streams: whole(options, "streams", 10_000), seconds: whole(options, "seconds", 3_600) };
  if (options.ws !== undefined) return runSocketBench(shell, options, target, load);
  if (options.gpu !== undefined) return runGpuBench(shell, options, target, load.seconds);
  shell.complain(`==> ${load.streams} streams for ${load.seconds} s on ${new URL(target.url).origin}`);
  const progress = printProgress(shell);
  const { records, elapsedSeconds } = await runLoad(target, load, shell.signal, progress.count);
  progress.done();
  const run = summarizeRun(load.streams, elapsedSeconds, records);
  shell.print(renderRun(run));
  if (options.json !== undefined) write(options.json, json(figures(target, load, run)));
  if (options.svg !== undefined)
    write(options.svg, plotRuns(describe(target, load), [{ name: "this run", run }]));
  return run.requests.complete > 0 ? 0 : 1;
}

/** Measures WebSockets, and HTTP requests of the same sentences for comparison. */
async function runSocketBench(
  shell: Shell,
  options: OptionValues,
  given: Target,
  load: Load,
): Promise<number> {
  const target = readSocketTarget(options, given);
  const pace = options.pace === undefined ? undefined : whole(options, "pace", 1_000);
  const withHttp = options["ws-only"] === undefined;
  shell.complain(`==> ${load.streams} sockets for ${load.seconds} s on ${new URL(target.url).origin}`);
  const progress = printProgress(shell);
  const report = await measureSockets(target, load, { pace, withHttp }, shell.signal, progress.count);
  progress.done();
  shell.print(renderSockets(report));
  const { url, model, voice, rate } = target;
  const parameters = { target: { url, model, voice, rate }, seconds: load.seconds, pace };
  if (options.json !== undefined) write(options.json, json({ ...parameters, ...report }));
  if (options.svg !== undefined)
    write(options.svg, plotRuns(describe(target, load, "sockets"), plotSeries(report)));
  return report.contexts.requests.complete > 0 ? 0 : 1;
}

/**
 * Finds how many streams one GPU can serve. With `--vllm`, the function also counts the tokens that vLLM
 * writes for these streams, and measures vLLM without the server.
 */
async function runGpuBench(
  shell: Shell,
  options: OptionValues,
  target: Target,
  seconds: number,
): Promise<number> {
  const gpus = whole(options, "gpus", 1_000);
  const rungs = readSteps(options);
  if (options.vllm !== undefined) requireUrl(options.vllm, "vllm");
  const vllm = options.vllm === undefined ? undefined : new PlainVllm(options.vllm);
  const ladder = await climb<GpuStep>(rungs, async (streams) => {
    if (shell.signal.aborted) return undefined;
    shell.complain(`==> ${streams} streams for ${seconds} s on ${new URL(target.url).origin}`);
    const load = { streams, seconds };
    const tokensBefore = await vllm?.tokens();
    const { records, elapsedSeconds } = await runLoad(target, load, shell.signal);
    const run = summarizeRun(streams, elapsedSeconds, records);
    if (!vllm || tokensBefore === undefined) return { run, holds: holds(run) };
    const tokensPerSecond = ((await vllm.tokens()) - tokensBefore) / elapsedSeconds;
    const plainTokensPerSecond = await vllm.tokensPerSecond(load, shell.signal);
    return { run, holds: holds(run), tokensPerSecond, plainTokensPerSecond };
  });
  shell.print(ladderTable(ladder, gpus));
  const { url, shape, model, voice, accept, rate } = target;
  if (options.json !== undefined)
    write(
      options.json,
      json({ target: { url, shape, model, voice, accept, rate }, seconds, gpus, ...ladder }),
    );
  if (options.svg !== undefined)
    write(
      options.svg,
      plotRuns(
        `${model}, ${voice}, ${accept}: ${seconds} s each`,
        ladder.steps.map(({ run }) => ({ name: `${run.streams} streams`, run })),
      ),
    );
  return ladder.most > 0 ? 0 : 1;
}

function readSteps({ steps = "" }: OptionValues): number[] {
  const counts = steps.split(",").map(Number);
  const rises = counts.every((count, at) => count > (counts[at - 1] ?? 0));
  if (rises && counts.every((count) => Number.isInteger(count) && count <= 10_000)) return counts;
  throw new UsageError(
    `--steps must be integers from 1 to 10000 in ascending order, separated by commas; it is ${JSON.stringify(steps)}.`,
  );
}

/** Returns the parameters and the results of a run, without the API key and the texts. */
function figures({ url, shape, model, voice, accept, rate }: Target, { seconds }: Load, run: Report): object {
  return { target: { url, shape, model, voice, accept, rate }, seconds, ...run };
}

function json(value: object): string {
  const readable = (_name: string, part: unknown) =>
    typeof part === "number" ? Number(part.toPrecision(6)) : part;
  return `${JSON.stringify(value, readable, 2)}\n`;
}

function describe({ model, voice, accept }: Target, { streams, seconds }: Load, kind = "streams"): string {
  return `${streams} ${kind} for ${seconds} s: ${model}, ${voice}, ${accept}`;
}

/** Counts finished streams, and prints the counts every two seconds until `done` is called. */
function printProgress(shell: Shell) {
  const startedAt = performance.now();
  const counts = { complete: 0, unfinished: 0, failed: 0 };
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    shell.complain(`    ${seconds} s: ${counts.complete} complete, ${counts.failed} failed`);
  }, progressMs);
  return {
    count: ({ outcome }: StreamRecord) => {
      counts[outcome] += 1;
    },
    done: () => clearInterval(timer),
  };
}

function readTarget(options: OptionValues, shell: Shell): Target {
  const { url = "", accept = "", model = "", voice = "" } = options;
  const shape = options.openai === undefined ? "svc-tts" : "openai";
  requireUrl(url);
  if (accept !== eventStream && (!accept.startsWith("audio/") || accept.includes("*"))) {
    throw new UsageError(
      `--accept must be an audio type, such as audio/pcm, or ${eventStream}; it is ${JSON.stringify(accept)}.`,
    );
  }
  if (shape === "openai" && !openaiTypes.includes(accept)) {
    throw new UsageError(
      `--accept with --openai must be one of ${openaiTypes.join(", ")}; it is ${JSON.stringify(accept)}.`,
    );
  }
  return {
    url,
    shape,
    key: options.key ?? (shell.env[names.apiKey] || undefined),
    model,
    voice,
    accept,
    eventFormat: readEventFormat(options),
    rate: options.rate === undefined ? undefined : whole(options, "rate", 384_000),
    texts: options.text === undefined ? defaultTexts : readTexts(options.text),
  };
}

function readEventFormat({ format = "" }: OptionValues): EventFormat {
  if (Object.hasOwn(eventFormatTypes, format)) return format as EventFormat;
  throw new UsageError(
    `--format must be one of ${Object.keys(eventFormatTypes).join(", ")}; it is ${JSON.stringify(format)}.`,
  );
}

function requireUrl(given: string, flag = "url"): void {
  const url = URL.parse(given);
  if (url && ["http:", "https:"].includes(url.protocol)) return;
  throw new UsageError(
    `--${flag} must be an address such as http://127.0.0.1:8000; it is ${JSON.stringify(given)}.`,
  );
}

function whole(options: OptionValues, flag: string, most: number): number {
  const value = Number(options[flag]);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new UsageError(
    `--${flag} must be an integer from 1 to ${most}; it is ${JSON.stringify(options[flag])}.`,
  );
}

function readTexts(path: string): string[] {
  const texts = read(path)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  if (texts.length === 0)
    throw new UsageError(`--text ${path}: the file contains no text; write one text per line.`);
  return texts;
}

function read(path: string): string {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > maxTextFileBytes) throw new Error(`the file is larger than ${maxTextFileBytes} bytes`);
    return bytes.toString("utf8");
  } catch (cause) {
    throw new UsageError(`--text ${path}: ${(cause as Error).message}`, { cause });
  }
}

function write(path: string, content: string): void {
  try {
    writeFileSync(path, content);
  } catch (cause) {
    throw new UsageError(`${path} cannot be written: ${(cause as Error).message}`, { cause });
  }
}
