import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Agent } from "undici";
import { ascending, quantile } from "../../server/bench/quantiles.ts";
import type { Report } from "../../server/bench/report.ts";
import { measureStream } from "../../server/bench/stream.ts";
import type { Target } from "../../server/bench/target.ts";
import { usualTexts } from "../../server/bench/texts.ts";
import type { EnginesAlone } from "./engines-alone.ts";
import type { FirstAudioFigures, ThroughputFigures } from "./figures.ts";
import { processorSeconds } from "./process-figures.ts";
import { program, type RunningServer } from "./running-server.ts";

type Server = Pick<RunningServer, "url" | "key" | "pids">;

/** A run of the load tool, as a program of its own. */
export async function load({ url, key }: Server, streams: number, seconds: number): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-bench-"));
  const json = join(folder, "run.json");
  const options = ["--streams", String(streams), "--seconds", String(seconds), "--json", json];
  try {
    const running = promisify(execFile)(process.execPath, [
      program,
      ...["bench", "--url", url, "--key", key],
      ...options,
    ]);
    running.child.stderr?.pipe(process.stderr, { end: false }); // its progress
    await running;
    return JSON.parse(readFileSync(json, "utf8")) as Report;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The streamed answers, each at a rate that people ask for; mist's engine for English gives 16 kHz. */
const variants = [
  { name: "raw PCM, 16 kHz", accept: "audio/pcm", rate: 16_000 },
  { name: "raw PCM, 24 kHz", accept: "audio/pcm", rate: 24_000 },
  { name: "WAV, 22.05 kHz", accept: "audio/wav", rate: 22_050 },
  { name: "mulaw, 8 kHz", accept: "audio/x-mulaw", rate: 8000 },
  { name: "MP3, 22.05 kHz", accept: "audio/mpeg", rate: 22_050 },
  { name: "Ogg Opus, 24 kHz", accept: "audio/ogg", rate: 24_000 },
  { name: "events of PCM, 24 kHz", accept: "text/event-stream", rate: 24_000 },
] as const;

const longText = [...usualTexts, ...usualTexts].join(" ").slice(0, 499).replace(/\W*$/, ".").padEnd(500);

/** Round by round the engine alone and each answer of the server, one at a time. */
export async function firstAudio(
  { url, key }: Server,
  engines: EnginesAlone,
  rounds: number,
): Promise<FirstAudioFigures> {
  const agent = new Agent({ pipelining: 1 });
  const engineMs: number[] = [];
  const servedMs = new Map<string, number[]>(variants.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    console.log(`    round ${round + 1} of ${rounds}`);
    for (const { name, ...form } of variants) {
      engineMs.push(await engines.firstChunkMs(longText));
      const target = { ...usualTarget, ...form, url, key };
      servedMs.get(name)?.push(await firstAudioMs(agent, target));
    }
  }
  await agent.close();
  return {
    textCharacters: longText.length,
    rounds,
    engineMs: median(engineMs),
    variants: [...servedMs].map(([name, times]) => ({ name, ms: median(times) })),
  };
}

const usualTarget = {
  shape: "svc-tts",
  model: "mist",
  voice: "alan",
  eventFormat: "pcm",
  texts: usualTexts,
} as const;

async function firstAudioMs(agent: Agent, target: Target): Promise<number> {
  const record = await measureStream(agent, target, longText, AbortSignal.timeout(60_000));
  if (record.outcome !== "complete" || record.firstAudioMs === undefined) {
    throw new Error(`${target.accept} was not answered whole: ${record.code ?? record.outcome}`);
  }
  return record.firstAudioMs;
}

function median(values: readonly number[]): number {
  return quantile(ascending(values), 0.5);
}

/** Windows in turn: the engines alone, then the same work through the server. */
export async function throughput(
  server: Server,
  engines: EnginesAlone,
  { streams, pairs, seconds }: { streams: number; pairs: number; seconds: number },
): Promise<ThroughputFigures> {
  const { api, mist, engines: engineIds } = server.pids;
  const processes = { "API tier": [api], "model tier": [mist], engines: engineIds };
  const spent = () =>
    Object.values(processes).map((ids) => ids.reduce((sum, id) => sum + processorSeconds(id), 0));
  const windows: { alone: number; served: number }[] = [];
  const processorTotals = Object.keys(processes).map(() => 0);
  let audioSeconds = 0;
  for (let pair = 0; pair < pairs; pair++) {
    console.log(`    ${streams} streams for ${seconds} s on the engines alone`);
    const alone = await engines.throughput(usualTexts, streams, seconds);
    const before = spent();
    const run = await load(server, streams, seconds);
    for (const [i, after] of spent().entries())
      processorTotals[i] = (processorTotals[i] ?? 0) + after - (before[i] ?? 0);
    audioSeconds += run.audioSeconds ?? 0;
    windows.push({ alone, served: run.audioSecondsPerSecond ?? 0 });
  }
  const names = Object.keys(processes);
  return {
    streams,
    pairs: windows,
    processorShares: names.map((name, i) => ({
      name,
      seconds: (100 * (processorTotals[i] ?? 0)) / audioSeconds,
    })),
  };
}
