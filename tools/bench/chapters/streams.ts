import { plotRuns } from "../../../server/bench/plot.ts";
import type { Report } from "../../../server/bench/report.ts";
import { renderRun as reportTable } from "../../../server/bench/table.ts";
import { load } from "../common/load.ts";
import type { Measurement } from "../common/measurement.ts";
import { markdownTable, percent } from "../common/page.ts";

const streamCounts = [1, 8, 32];
const seconds = 6;

/**
 * Measures full load with few and with many streams. This load also warms up the server for later
 * measurements.
 */
export const streams: Measurement = {
  name: "Streams",
  async measure(workbench) {
    const server = await workbench.server();
    const runs: Report[] = [];
    for (const count of streamCounts) {
      const run = await load(server, { streams: count, seconds });
      console.log(reportTable(run));
      runs.push(run);
    }
    const series = runs.map((run) => ({ name: streamsName(run.streams), run }));
    return {
      targets: [],
      text: page(runs),
      plots: { "streams.svg": plotRuns("First audio and starvation by streams", series) },
    };
  },
};

function page(runs: readonly Report[]): string {
  return `The streams synthesize typical sentences of voice agents as raw PCM at 16 kHz, with the voice \`alan\` of \`mist\`. Every stream sends its next request when the previous one has ended, and reads as
fast as it can. Therefore more than one stream is full load, and the time to first audio is mostly time in the queue for an engine.

![First audio and underruns by number of streams](benchmarks/streams.svg)

${runsTable(runs)}`;
}

/** Returns a table with one row for each run. */
export function runsTable(runs: readonly Report[]): string {
  return markdownTable(
    [
      "streams",
      "complete",
      "failed",
      "first audio p50 / p95 / p99",
      "real-time factor p50",
      "underruns over 100 ms",
      "audio per second",
    ],
    runs.map(row),
  );
}

function row(run: Report): string[] {
  const times = run.firstAudioMs;
  return [
    String(run.streams),
    String(run.requests.complete),
    String(run.requests.failed),
    times ? `${[times.p50, times.p95, times.p99].map((ms) => ms.toFixed(0)).join(" / ")} ms` : "none",
    run.realTimeFactor?.p50.toFixed(3) ?? "none",
    run.playback.starvedShare === undefined ? "none" : percent(run.playback.starvedShare),
    `${(run.audioSecondsPerSecond ?? 0).toFixed(0)} s`,
  ];
}

function streamsName(count: number): string {
  return count === 1 ? "1 stream" : `${count} streams`;
}
