/** `make bench`: our server measured side by side with what it is made of; writes docs/benchmarks.md and its plot. */
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { plot } from "../../server/bench/plot.ts";
import type { Report } from "../../server/bench/report.ts";
import { table } from "../../server/bench/table.ts";
import { benchmarksDocument } from "./document.ts";
import { type EnginesAlone, openEnginesAlone } from "./engines-alone.ts";
import type { Figures, Machine } from "./figures.ts";
import { firstAudio, load, throughput } from "./measure.ts";
import { residentBytes } from "./process-figures.ts";
import { type RunningServer, startServer } from "./running-server.ts";

const streamCounts = [1, 8, 32];
const loadSeconds = 6;
const firstAudioRounds = 7;
const throughputPlan = { streams: 32, pairs: 3, seconds: 6 };
const docs = join(import.meta.dirname, "../../docs");

const machine = describeMachine();
const server = await startServer();
const engines = await openEnginesAlone();
try {
  write(await measure(server, engines));
} finally {
  await engines.close();
  await server.stop();
}

async function measure(running: RunningServer, alone: EnginesAlone): Promise<Figures> {
  const atRestBytes = residentBytes(running.pids.api);
  const loads: Report[] = [];
  for (const streams of streamCounts) {
    const run = await load(running, streams, loadSeconds);
    console.log(table(run));
    loads.push(run);
  }
  console.log(`==> first audio of a long text, ${firstAudioRounds} rounds`);
  const first = await firstAudio(running, alone, firstAudioRounds);
  console.log(
    `==> throughput with and without HTTP, ${throughputPlan.pairs} pairs of ${throughputPlan.seconds} s`,
  );
  const rates = await throughput(running, alone, throughputPlan);
  const apiMemory = { atRestBytes, afterLoadBytes: residentBytes(running.pids.api) };
  return { machine, loads, firstAudio: first, throughput: rates, apiMemory };
}

function write(figures: Figures): void {
  mkdirSync(join(docs, "benchmarks"), { recursive: true });
  const series = figures.loads.map((run) => ({ name: streamsName(run.streams), run }));
  writeFileSync(
    join(docs, "benchmarks", "streams.svg"),
    plot("First audio and starvation by streams", series),
  );
  const page = benchmarksDocument(figures);
  writeFileSync(join(docs, "benchmarks.md"), page);
  console.log(
    `\n${page.slice(page.indexOf("## Targets"), page.indexOf("## Streams"))}==> docs/benchmarks.md is written`,
  );
}

function streamsName(streams: number): string {
  return streams === 1 ? "1 stream" : `${streams} streams`;
}

function describeMachine(): Machine {
  return {
    processor: cpus()[0]?.model.trim() ?? "unknown processor",
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    node: process.versions.node,
    kernel: release().split("-")[0] ?? "",
    loadBefore: loadavg()[0] ?? 0,
  };
}
