import type { Report } from "../../../server/bench/report.ts";
import { load } from "../common/load.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { percent } from "../common/page.ts";
import { runsTable } from "./streams.ts";

const streamCounts = [1, 8];
const seconds = 10;
const mostFirstAudioMs = 150;
const mostRealTimeFactor = 0.5;

/** Measures arcana-mini with its defaults: time to first audio, speed, and underruns. */
export const arcana: Measurement = {
  name: "arcana",
  async measure(workbench) {
    const server = await workbench.server();
    const runs: Report[] = [];
    for (const streams of streamCounts) {
      runs.push(await load(server, { streams, seconds, options: ["--model", "arcana", "--voice", "luna"] }));
    }
    return { targets: runs.flatMap(targets), text: page(runs) };
  },
};

function targets({ streams, firstAudioMs, realTimeFactor, playback }: Report): TargetRow[] {
  if (streams > 1) {
    const share = playback.starvedShare ?? 1;
    return [
      {
        what: `streams of arcana-mini with underruns over 100 ms, ${streams} at once`,
        target: "none",
        measured: percent(share),
        met: share === 0,
      },
    ];
  }
  const first = firstAudioMs?.p50 ?? Number.POSITIVE_INFINITY;
  const factor = realTimeFactor?.p50 ?? Number.POSITIVE_INFINITY;
  return [
    {
      what: "first audio of arcana-mini, one stream, p50",
      target: `at most ${mostFirstAudioMs} ms`,
      measured: `${first.toFixed(0)} ms`,
      met: first <= mostFirstAudioMs,
    },
    {
      what: "real-time factor of arcana-mini, one stream, p50",
      target: `at most ${mostRealTimeFactor}`,
      measured: factor.toFixed(3),
      met: factor <= mostRealTimeFactor,
    },
  ];
}

function page(runs: readonly Report[]): string {
  return `The streams use the voice \`luna\`, default options and raw PCM. Every stream sends its next request when the previous one has ended, and reads as fast as it can.

${runsTable(runs)}`;
}
