import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { env as names } from "../../../config/contract/names.ts";
import { childrenOf } from "../../../test/support/processes.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";
import { program, type RunningServer, startServer } from "../common/running-server.ts";
import {
  alternate,
  comparedSentences,
  comparedText,
  measureThroughput,
  type Send,
  timeFirstAudio,
  untilServed,
} from "../common/servers-in-turn.ts";
import { type FastKokoro, startFastKokoro } from "./fastkokoro-server.ts";

const preset = "kokoro-82m";
const voice = "af_heart";
const pcm = { rate: 24_000, headerBytes: 0 };
const firstAudioRounds = 5;
const windows = 2;
const windowSeconds = 15;
const streamCounts = [1, 2, 4];
const mostOfTheirMemory = 0.6;
const leastOfTheirThroughput = 1.3;
const mostBytesPerProcess = 550e6;
const pauseAfterRejectionMs = 250;

/**
 * The texts. `share` is the highest allowed time to first audio, relative to the time of the other server.
 */
const texts = [
  { what: "2 words", text: "Hello there.", share: undefined },
  { what: "10 words", text: "Your new table will be delivered on Thursday in May.", share: 1 / 5 },
  { what: `${comparedText.length} characters`, text: comparedText, share: 1 / 4 },
] as const;

interface Sides {
  readonly ours: number;
  readonly theirs: number;
}

interface Figures {
  readonly runtimes: { readonly ours: string; readonly theirs: string };
  readonly firstAudio: readonly (Sides & (typeof texts)[number])[];
  readonly audioPerSecond: readonly (Sides & { readonly streams: number })[];
  /** The number of requests that this server rejected because all streams were in use. */
  readonly rejections: number;
  readonly memory: Sides;
  /** The memory of this server's process that runs the model. */
  readonly modelProcessBytes: number;
}

/** Compares Kokoro-82M on this server with fastkokoro, in turn and with the same model file. */
export const naturalVoices: Measurement = {
  name: "Natural voices",
  async measure() {
    const figures = await measureBoth();
    return { targets: targets(figures), text: page(figures) };
  },
};

async function measureBoth(): Promise<Figures> {
  const models = join(homedir(), ".cache", "svc-tts", "bench-models");
  await promisify(execFile)(process.execPath, [program, "models", "get", preset, "--into", models]);
  const ours = await startServer({ [names.modelsDir]: models });
  try {
    await untilServed(ours.url, voice);
    const theirs = await startFastKokoro(join(models, preset), voice);
    try {
      return await compare(ours, theirs);
    } finally {
      await theirs.stop();
    }
  } finally {
    await ours.stop();
  }
}

async function compare(ours: RunningServer, theirs: FastKokoro): Promise<Figures> {
  const rejected = { count: 0 };
  const senders = {
    ours: retrying(senderTo(ours.url, "mist", ours.key), rejected),
    theirs: senderTo(theirs.url, "kokoro"),
  };
  for (const send of Object.values(senders))
    for (const text of comparedSentences) await timeFirstAudio(send, pcm, text);
  const firstAudio: (Sides & (typeof texts)[number])[] = [];
  for (const row of texts) {
    const medians = await alternate(firstAudioRounds, senders, (send) => timeFirstAudio(send, pcm, row.text));
    console.log(
      `    first audio of ${row.what}: ${medians.ours.toFixed(0)} and ${medians.theirs.toFixed(0)} ms`,
    );
    firstAudio.push({ ...medians, ...row });
  }
  rejected.count = 0;
  const audioPerSecond: (Sides & { streams: number })[] = [];
  for (const streams of streamCounts) {
    const window = { streams, seconds: windowSeconds };
    const medians = await alternate(windows, senders, (send) => measureThroughput(send, pcm, window));
    console.log(`    ${streams} streams: ${medians.ours.toFixed(2)} and ${medians.theirs.toFixed(2)} s/s`);
    audioPerSecond.push({ ...medians, streams });
  }
  const tier = [ours.pids.mist, ...childrenOf(ours.pids.mist)];
  const memory = { ours: sumOfMemory([ours.pids.api, ...tier]), theirs: sumOfMemory([theirs.pid]) };
  const modelProcessBytes = Math.max(...tier.map(proportionalBytes));
  const runtimes = { ours: ourRuntime(), theirs: theirs.runtime };
  return { runtimes, firstAudio, audioPerSecond, rejections: rejected.count, memory, modelProcessBytes };
}

function senderTo(url: string, model: string, key?: string): Send {
  const headers = {
    "content-type": "application/json",
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
  return (input) =>
    fetch(`${url}/v1/audio/speech`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model, voice, input, response_format: "pcm", ...(key ? {} : { stream: true }) }),
    });
}

/** Repeats a request that the server rejects because all streams are in use, as clients do. */
function retrying(send: Send, rejected: { count: number }): Send {
  return async (text) => {
    for (;;) {
      const response = await send(text);
      if (response.status !== 503) return response;
      await response.body?.cancel();
      rejected.count += 1;
      await new Promise((resolve) => setTimeout(resolve, pauseAfterRejectionMs));
    }
  };
}

function sumOfMemory(pids: readonly number[]): number {
  return pids.reduce((total, pid) => total + proportionalBytes(pid), 0);
}

/**
 * Returns the memory of a process, including its part of shared pages (`Pss` in proc_pid_smaps_rollup(5)).
 */
function proportionalBytes(pid: number): number {
  const match = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
  if (!match) throw new Error(`/proc/${pid}/smaps_rollup has no Pss: process ${pid} may have ended`);
  return Number(match[1]) * 1024;
}

function ourRuntime(): string {
  const read = createRequire(import.meta.url);
  return (read("onnxruntime-node/package.json") as { version: string }).version;
}

function targets({ firstAudio, audioPerSecond, memory, modelProcessBytes }: Figures): TargetRow[] {
  const memoryShare = memory.ours / memory.theirs;
  return [
    ...firstAudio.flatMap(({ what, share, ours, theirs }) =>
      share === undefined
        ? []
        : [
            {
              what: `first audio of Kokoro relative to fastkokoro, ${what}`,
              target: `at most ${share.toFixed(2)} of theirs`,
              measured: `${(ours / theirs).toFixed(2)} of theirs`,
              met: ours / theirs <= share,
            },
          ],
    ),
    ...audioPerSecond.map(({ streams, ours, theirs }) => ({
      what: `audio per second of Kokoro relative to fastkokoro at ${streams} stream${streams === 1 ? "" : "s"}`,
      target: `at least ${leastOfTheirThroughput} of theirs`,
      measured: `${(ours / theirs).toFixed(2)} of theirs`,
      met: ours / theirs >= leastOfTheirThroughput,
    })),
    {
      what: "memory relative to fastkokoro",
      target: `at most ${mostOfTheirMemory} of theirs`,
      measured: `${memoryShare.toFixed(2)} of theirs`,
      met: memoryShare <= mostOfTheirMemory,
    },
    {
      what: "memory of the process with Kokoro",
      target: `at most ${megabytes(mostBytesPerProcess)}`,
      measured: megabytes(modelProcessBytes),
      met: modelProcessBytes <= mostBytesPerProcess,
    },
  ];
}

function page({
  runtimes,
  firstAudio,
  audioPerSecond,
  rejections,
  memory,
  modelProcessBytes,
}: Figures): string {
  const rows = [
    ...firstAudio.map(({ what, ours, theirs }) => [`first audio, ${what}`, ...milliseconds(ours, theirs)]),
    ...audioPerSecond.map(({ streams, ours, theirs }) => [
      `audio per second, streams: ${streams}`,
      `${ours.toFixed(2)} s`,
      `${theirs.toFixed(2)} s`,
    ]),
    ["memory", megabytes(memory.ours), megabytes(memory.theirs)],
  ];
  return `The benchmark alternates between our server and PyPI's \`fastkokoro\` 0.7.0, with the same file of Kokoro-82M, the voice \`${voice}\`, raw PCM and the same
request to \`/v1/audio/speech\`. Each server has its default settings; ours uses the [rewritten graph](adr/0018-a-graph-rewritten-for-processors.md). The figures are medians.
Our server accepts as many streams as it can synthesize without gaps, so with more streams the clients repeat rejected requests: ${rejections} times in this run.

${markdownTable(["figure", `ours, ONNX Runtime ${runtimes.ours}`, `fastkokoro, ONNX Runtime ${runtimes.theirs}`], rows)}

Memory is that of our API tier and of the tier of \`mist\` with all of its engines, of which ${megabytes(modelProcessBytes)} belong to the process with the model.`;
}

function milliseconds(...values: number[]): string[] {
  return values.map((value) => `${value.toFixed(0)} ms`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
