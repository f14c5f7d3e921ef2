import { defaultTexts } from "../../../server/bench/texts.ts";
import { load, median, spentBy, sum } from "../common/load.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable, percent } from "../common/page.ts";

const streams = 32;
const seconds = 6;
const pairs = 4;
const leastShare = 0.85;

interface Pair {
  /** The seconds of audio per second, of the engines alone and of the server. */
  readonly alone: number;
  readonly served: number;
}

/**
 * Measures the throughput in alternating windows: of the engines alone, and of the server with the same work.
 */
export const throughput: Measurement = {
  name: "Throughput",
  async measure(workbench) {
    const server = await workbench.server();
    const engines = await workbench.engines();
    const { api, mist, engines: engineIds } = server.pids;
    const pids = [api, mist, ...engineIds];
    const windows: Pair[] = [];
    const spent = pids.map(() => 0);
    let audioSeconds = 0;
    for (let pair = 1; pair <= pairs; pair++) {
      console.log(`    pair ${pair} of ${pairs}: ${streams} streams for ${seconds} s on the engines alone`);
      const alone = await engines.throughput(defaultTexts, streams, seconds);
      const { result: run, seconds: more } = await spentBy(pids, () => load(server, { streams, seconds }));
      for (const [i, one] of more.entries()) spent[i] = (spent[i] ?? 0) + one;
      audioSeconds += run.audioSeconds ?? 0;
      windows.push({ alone, served: run.audioSecondsPerSecond ?? 0 });
    }
    const shares = spent.map((one) => (100 * one) / audioSeconds);
    return { targets: [target(windows)], text: page(windows, shares) };
  },
};

function target(windows: readonly Pair[]): TargetRow {
  const share = median(windows.map(({ served }) => served)) / median(windows.map(({ alone }) => alone));
  return {
    what: `throughput at ${streams} streams relative to the engines without HTTP`,
    target: `at least ${percent(leastShare)}`,
    measured: percent(share),
    met: share >= leastShare,
  };
}

function page(windows: readonly Pair[], [api = 0, model = 0, ...engines]: readonly number[]): string {
  const rows = windows.map(({ alone, served }, i) => [
    String(i + 1),
    `${alone.toFixed(1)} s/s`,
    `${served.toFixed(1)} s/s`,
    percent(served / alone),
  ]);
  const spent = { "API tier": api, "model tier": model, engines: sum(engines) };
  return `The benchmark alternates between ${streams} streams of raw PCM and the same engine processes without HTTP. The target compares medians.

${markdownTable(["window", "engines alone", "through the server", "share"], rows)}

CPU time for a hundred seconds of served audio:

${markdownTable(
  ["process", "seconds"],
  Object.entries(spent).map(([name, one]) => [name, one.toFixed(2)]),
)}`;
}
