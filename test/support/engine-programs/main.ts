/**
 * Programs that tests start as processes: engines, and owners of engines. The first argument selects the
 * program.
 */
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { GeneratorSettings } from "../../../server/engine/vllm/settings.ts";

const quiet = { info: () => undefined, warn: () => undefined };

/** Acts like an engine whose library is not installed. */
async function absent(): Promise<void> {
  const { reportStartFailure } = await import("../../../server/engine/runtime/serve-jobs.ts");
  reportStartFailure("The library cannot be loaded. Install it: apt-get install the-library");
}

/** Acts like an engine. Each sample of its audio is `number`. For the text `on`, the audio does not end. */
async function numbered(number: string): Promise<void> {
  const { serveJobs } = await import("../../../server/engine/runtime/serve-jobs.ts");
  const piece = new Int16Array(800).fill(Number(number));
  await serveJobs(async ({ tokens }, sink) => {
    while (sink.audio(piece, 8_000) && tokens[0]?.text === "on") await sleep(5);
  });
}

/**
 * Acts like an engine whose audio does not end. After its second piece, the engine waits for a byte on the
 * standard input. The argument `stretched` makes the engine slower than the audio is requested.
 */
async function gated(argument: string): Promise<void> {
  const { serveJobs } = await import("../../../server/engine/runtime/serve-jobs.ts");
  const { withinSpeedRange } = await import("../../../server/engine/runtime/speed-range.ts");
  const piece = new Int16Array(8_000);
  const standardInput = 0; // `process.stdin` would make reads from the descriptor return without waiting.
  const least = argument === "stretched" ? 2 : 1;
  const synthesize = withinSpeedRange(
    (_, sink) => {
      for (let pieces = 1; sink.audio(piece, 8_000); pieces++) {
        if (pieces === 2) readSync(standardInput, Buffer.alloc(1));
        if (pieces === 20) throw new Error("the engine was not stopped");
      }
    },
    { least, most: 4 },
  );
  await serveJobs(synthesize);
}

/**
 * Acts like `numbered`, but the first processes of a folder end when an utterance arrives, without reading
 * it.
 */
async function numberedAfter(argument: string): Promise<void> {
  const { folder, deaths } = JSON.parse(argument) as { folder: string; deaths: number | null };
  if (deaths !== null && startedIn(folder) > deaths) return numbered("1");
  const { encodeMessage, engineSocket, messageTypes } = await import(
    "../../../server/engine/runtime/protocol.ts"
  );
  writeSync(engineSocket, encodeMessage(messageTypes.ready));
  readSync(engineSocket, Buffer.alloc(1));
}

/** Returns the number of processes that were started for this folder, including this process. */
function startedIn(folder: string): number {
  for (let count = 1; ; count++) {
    try {
      closeSync(openSync(join(folder, String(count)), "wx"));
      return count;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/** Owns two engine processes, prints their process ids, and waits to be killed. */
async function owner(): Promise<void> {
  const { ProcessPool } = await import("../../../server/engine/runtime/process-pool.ts");
  const file = fileURLToPath(new URL("../../../server/engine/espeak/main.ts", import.meta.url));
  const pool = await ProcessPool.open({ name: "espeak", rate: 22_050, file }, { processes: 2, log: quiet });
  process.stdout.write(JSON.stringify(pool.pids()));
}

/** Owns a generator, prints the process ids of vLLM and of the codec, and waits to be killed. */
async function generatorOwner(settings: string): Promise<void> {
  const { VllmEngine } = await import("../../../server/engine/vllm/engine.ts");
  const { childrenWith } = await import("../processes.ts");
  const read = JSON.parse(settings) as GeneratorSettings;
  await VllmEngine.open({ ...read, maxStreams: 2, host: "127.0.0.1", log: quiet });
  const pids = ["scripted-vllm/main.ts", "codec/main.ts"].flatMap((name) => childrenWith(name));
  console.log(JSON.stringify(pids));
}

/**
 * Uses up all file descriptors, tries to start the programs of a model tier, and prints the error of each
 * program as JSON. It must not crash.
 */
async function starved(): Promise<void> {
  const { systemClock } = await import("../../../lib/clock.ts");
  const { EngineProcess } = await import("../../../server/engine/runtime/engine-process.ts");
  const { SupervisedServer } = await import("../../../server/engine/vllm/server/server.ts");
  const { VllmProcess } = await import("../../../server/engine/vllm/server/vllm-process.ts");
  const { GpuLoad } = await import("../../../server/telemetry/gpu-load.ts");
  const vllm = { program: "true", args: [], environment: {} };
  const descriptors = openAllDescriptors();
  const gpuLoad = new GpuLoad(quiet, systemClock);
  const times = { lookMs: 1, proofMs: 1, startMs: 1 };
  const proof = async () => true;
  const errors = await Promise.all([
    EngineProcess.start({ file: "engine.ts" }).catch(String),
    new VllmProcess(vllm, quiet).ended,
    SupervisedServer.open({ ...vllm, ...times, port: undefined, apiKey: "key", proof, log: quiet }).catch(
      String,
    ),
  ]);
  gpuLoad.close();
  for (const descriptor of descriptors) closeSync(descriptor);
  process.stdout.write(JSON.stringify(errors));
}

function openAllDescriptors(): number[] {
  const descriptors: number[] = [];
  try {
    for (;;) descriptors.push(openSync("/dev/null", "r"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    return descriptors;
  }
}

const programs: Readonly<Record<string, (argument: string) => Promise<void>>> = {
  absent,
  telling: numbered,
  gated,
  "telling-after": numberedAfter,
  owner,
  "generator-owner": generatorOwner,
  starved,
};
const [, , name = "", argument = ""] = process.argv;
await programs[name]?.(argument);
