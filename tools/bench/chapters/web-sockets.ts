import type { Quantiles } from "../../../server/bench/quantiles.ts";
import type { Report } from "../../../server/bench/report.ts";
import { longGapMs, type SocketReport } from "../../../server/bench/sockets/socket-report.ts";
import { load, loadSockets, median, spentBy } from "../common/load.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable, percent } from "../common/page.ts";
import { replayText } from "../replay/audio.ts";
import { type ApiAlone, replayOptions, startApiAlone } from "./api-alone.ts";
import { openLimits } from "./open-limits.ts";

const single = { streams: 1, seconds: 12 };
const mostExcessMs = 3;
const firstChunkMs = { least: 20, most: 40 };

const listeners = { streams: 300, seconds: 8, pairs: 2 };
const leastPerCore = 300;
const leastShare = 0.9;

const models = [
  { name: "mist", options: [] },
  { name: "arcana", options: replayOptions },
] as const;

/** Measures streamed text over WebSockets, alternating with HTTP requests of the same sentences. */
export const webSockets: Measurement = {
  name: "WebSockets",
  async measure(workbench) {
    const server = await workbench.server();
    const alone: SocketReport[] = [];
    for (const { options } of models) alone.push(await loadSockets(server, { ...single, options }));
    const api = await startApiAlone(openLimits);
    try {
      const pairs = await comparePairs(api);
      return {
        targets: [...alone.map(excessTarget), firstChunkTarget(alone), ...capacityTargets(pairs)],
        text: page(alone, pairs),
      };
    } finally {
      await api.stop();
    }
  },
};

/** The real-time streams of one core: seconds of audio for each CPU second of the API tier. */
interface Pair {
  readonly http: number;
  readonly sockets: number;
  readonly report: SocketReport;
}

async function comparePairs(api: ApiAlone): Promise<Pair[]> {
  const plan = { ...listeners, text: replayText(5, "in time") };
  const rate = ["--rate", "24000"];
  const pairs: Pair[] = [];
  for (let i = 0; i < listeners.pairs; i++) {
    const http = await spentBy([api.pid], () => load(api, { ...plan, options: [...replayOptions, ...rate] }));
    const sockets = await spentBy([api.pid], () =>
      loadSockets(api, { ...plan, options: [...replayOptions, ...rate, "--ws-only"] }),
    );
    pairs.push({
      http: audioOf(http.result) / (http.seconds[0] ?? Number.NaN),
      sockets: audioOfAll(sockets.result) / (sockets.seconds[0] ?? Number.NaN),
      report: sockets.result,
    });
  }
  return pairs;
}

function audioOf({ audioSeconds }: Report): number {
  return audioSeconds ?? Number.NaN;
}

function audioOfAll({ contexts, cancelled }: SocketReport): number {
  return audioOf(contexts) + cancelled.audioSeconds;
}

function excessTarget({ firstAudioExcessMs }: SocketReport, at: number): TargetRow {
  const excessMs = firstAudioExcessMs?.p50 ?? Number.NaN;
  return {
    what: `first audio after a sentence on an open WebSocket, minus that of HTTP, ${models[at]?.name}, p50`,
    target: `at most ${mostExcessMs} ms`,
    measured: `${excessMs.toFixed(1)} ms`,
    met: excessMs <= mostExcessMs,
  };
}

function firstChunkTarget(alone: readonly SocketReport[]): TargetRow {
  const shortestMs = Math.min(...alone.map(({ firstChunks }) => firstChunks.shortestMs ?? Number.NaN));
  const longestMs = Math.max(...alone.map(({ firstChunks }) => firstChunks.longestMs ?? Number.NaN));
  const { least, most } = firstChunkMs;
  return {
    what: "audio of the first chunk of a synthesis on a WebSocket, mist and arcana",
    target: `${least} to ${most} ms`,
    measured: `${shortestMs.toFixed(0)} to ${longestMs.toFixed(0)} ms`,
    met: shortestMs >= least && longestMs <= most,
  };
}

function capacityTargets(pairs: readonly Pair[]): TargetRow[] {
  const perCore = median(pairs.map(({ sockets }) => sockets));
  const share = perCore / median(pairs.map(({ http }) => http));
  const largestGapMs = Math.max(...pairs.map(({ report }) => report.chunkGaps.largestMs ?? Number.NaN));
  return [
    {
      what: "real-time contexts of 24 kHz PCM on WebSockets per core of the API tier alone",
      target: `at least ${leastPerCore}`,
      measured: perCore.toFixed(0),
      met: perCore >= leastPerCore,
    },
    {
      what: "the same relative to HTTP",
      target: `at least ${percent(leastShare)}`,
      measured: percent(share),
      met: share >= leastShare,
    },
    {
      what: `largest gap between the chunks of one synthesis, ${listeners.streams} contexts at real time`,
      target: `under ${longGapMs} ms`,
      measured: `${largestGapMs.toFixed(0)} ms`,
      met: largestGapMs < longGapMs,
    },
  ];
}

function page(alone: readonly SocketReport[], pairs: readonly Pair[]): string {
  const excessRows = alone.map(({ contexts, http, firstAudioExcessMs }, at) => [
    models[at]?.name ?? "",
    times(contexts.firstAudioMs),
    times(http?.firstAudioMs),
    times(firstAudioExcessMs),
  ]);
  const pairRows = pairs.map(({ http, sockets }, i) => [
    String(i + 1),
    `${http.toFixed(0)} s`,
    `${sockets.toFixed(0)} s`,
    percent(sockets / http),
  ]);
  return `\`svc-tts bench --ws\` sends each text word by word on an open socket of \`/ws3\`, and requests the first sentence of the same text by HTTP, in turn, as raw PCM at 24 kHz. The
time to first audio starts when the last word of the first sentence is sent. One socket:

${markdownTable(["model", "WebSocket p50 / p95 / p99", "HTTP p50 / p95 / p99", "difference"], excessRows)}

${listeners.streams} clients of the API tier alone, which replays a recording at real time: seconds of audio per CPU second, in turn:

${markdownTable(["window", "HTTP", "WebSockets", "share"], pairRows)}`;
}

function times(values: Quantiles | undefined): string {
  if (!values) return "not known";
  return `${[values.p50, values.p95, values.p99].map((ms) => ms.toFixed(1)).join(" / ")} ms`;
}
