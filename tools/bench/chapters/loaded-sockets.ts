import { availableParallelism } from "node:os";
import { otelEnv } from "../../../config/contract/names.ts";
import { ascending, type Quantiles, quantiles } from "../../../server/bench/quantiles.ts";
import { longGapMs, type SocketReport } from "../../../server/bench/sockets/socket-report.ts";
import { renderSockets } from "../../../server/bench/sockets/socket-table.ts";
import { startOtlpReceiver } from "../../../test/support/server/otlp.ts";
import { type CancelledContext, cancelContexts, type FreeTimes, freeTimes } from "../common/cancel-probe.ts";
import { loadSockets } from "../common/load.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";
import { type RunningServer, startServer } from "../common/running-server.ts";
import { openLimits } from "./open-limits.ts";

const seconds = 15;
const mostMs = 100;
/** The number of clients that cancel contexts during the full load. */
const cancellingClients = 4;
/** The words per second of a client that sends its text at the speed of speech. */
const speakingPace = 3;

/**
 * The models. `fullLoad` is the number of concurrent contexts, and `perCore` is the number of streams that
 * docs/how-to/sizing.md states for each core.
 */
const models = [
  { model: "mist", speaker: "alan", fullLoad: 28, perCore: 40 },
  { model: "arcana", speaker: "luna", fullLoad: 8, perCore: 10 },
] as const;
type Model = (typeof models)[number];

interface Loaded {
  readonly model: Model;
  /** Contexts at full load. Each client sends its next text as soon as the previous text is synthesized. */
  readonly full: SocketReport;
  readonly cancelled: readonly CancelledContext[];
  /** Contexts at the stated capacity. Each client sends its text at the speed of speech. */
  readonly stated: SocketReport;
}

/** Measures cancelling at full load, and gaps at the stated capacity, with the real engines. */
export const loadedSockets: Measurement = {
  name: "WebSockets under load",
  async measure() {
    const receiver = await startOtlpReceiver();
    const server = await startServer({ ...openLimits, ...tracingTo(receiver.url) });
    const loaded: Loaded[] = [];
    try {
      for (const model of models) loaded.push(await loadModel(server, model));
    } finally {
      await server.stop(); // The stop sends the last spans.
      await receiver.close();
    }
    const spans = receiver.spans();
    const free = loaded.map(({ cancelled }) => freeTimes(cancelled, spans));
    return {
      targets: loaded.flatMap((one, at) => [...cancelTargets(one, free[at]), gapTarget(one)]),
      text: page(loaded, free),
    };
  },
};

/** Returns settings with which the server traces only the requests whose client requests a trace. */
function tracingTo(url: string): NodeJS.ProcessEnv {
  return {
    [otelEnv.tracesExporter]: "otlp",
    [otelEnv.endpoint]: url,
    [otelEnv.protocol]: "http/json",
    [otelEnv.tracesSampler]: "parentbased_always_off",
  };
}

async function loadModel(server: RunningServer, model: Model): Promise<Loaded> {
  const options = ["--ws-only", "--model", model.model, "--voice", model.speaker];
  const [full, cancelled] = await Promise.all([
    loadSockets(server, { streams: model.fullLoad, seconds, options }),
    cancelContexts(server, model, { clients: cancellingClients, seconds }),
  ]);
  console.log(renderSockets(full));
  const stated = await loadSockets(server, {
    streams: statedStreams(model),
    seconds,
    options: [...options, "--pace", String(speakingPace)],
  });
  console.log(renderSockets(stated));
  return { model, full, cancelled, stated };
}

function statedStreams({ perCore }: Model): number {
  return perCore * availableParallelism();
}

function cancelTargets({ model, cancelled }: Loaded, free: FreeTimes | undefined): TargetRow[] {
  const load = `${model.model} at full load, p99`;
  return [
    p99Target(
      `from cancelling to silence, ${load}`,
      cancelled.map(({ silenceMs }) => silenceMs),
    ),
    p99Target(`from cancelling to a free stream of the model tier, ${load}`, free?.slotMs ?? []),
    p99Target(`from cancelling to a free engine process, ${load}`, free?.processMs ?? []),
  ];
}

function p99Target(what: string, values: readonly number[]): TargetRow {
  const p99 = quantilesOf(values)?.p99 ?? Number.NaN;
  return { what, target: `under ${mostMs} ms`, measured: `${p99.toFixed(0)} ms`, met: p99 < mostMs };
}

function gapTarget({ model, stated: { chunkGaps } }: Loaded): TargetRow {
  const largestMs = chunkGaps.largestMs ?? Number.NaN;
  return {
    what: `largest gap between the chunks of one synthesis, ${model.model} at the stated capacity`,
    target: `under ${longGapMs} ms`,
    measured: `${largestMs.toFixed(0)} ms`,
    met: largestMs < longGapMs,
  };
}

function page(loaded: readonly Loaded[], free: readonly FreeTimes[]): string {
  const cancelRows = loaded.flatMap(({ model, cancelled }, at) => [
    [model.model, "silence", String(cancelled.length), times(cancelled.map(({ silenceMs }) => silenceMs))],
    [model.model, "free stream of the model tier", ...counted(free[at]?.slotMs)],
    [model.model, "free engine process", ...counted(free[at]?.processMs)],
  ]);
  const gapRows = loaded.map(({ model, stated: { contexts, chunkGaps } }) => [
    model.model,
    String(statedStreams(model)),
    String(contexts.requests.complete),
    String(contexts.requests.failed),
    String(chunkGaps.count),
    `${chunkGaps.p99Ms?.toFixed(0)} ms`,
    `${chunkGaps.largestMs?.toFixed(0)} ms`,
  ]);
  const loads = loaded.map(({ model, full }) => `${full.contexts.streams} sockets of ${model.model}`);
  return `${loads.join(", and then ")}, read as fast as they can, so the engines are at full load. ${cancellingClients} other clients cancel each of their contexts at its first audio. The time starts when a client sends \`clear\`. Silence is the
\`done\` after the last audio. The times of the model tier are from the [traces](reference/traces.md) of the cancelled contexts; the row of processes has the contexts that occupied an engine process when they were cancelled.

${markdownTable(["model", "from cancelling to", "contexts", "p50 / p95 / p99"], cancelRows)}

Gaps between the chunks of one synthesis at the [stated capacity](how-to/sizing.md#2-choose-the-engine), which is the number of streams to plan. Each client sends ${speakingPace} words per second, which is about the speed of speech:

${markdownTable(["model", "sockets", "complete", "failed", "gaps", "p99", "largest"], gapRows)}`;
}

function counted(values: readonly number[] = []): string[] {
  return [String(values.length), times(values)];
}

function times(values: readonly number[]): string {
  const found = quantilesOf(values);
  if (!found) return "not known";
  return `${[found.p50, found.p95, found.p99].map((ms) => ms.toFixed(1)).join(" / ")} ms`;
}

function quantilesOf(values: readonly number[]): Quantiles | undefined {
  return quantiles(ascending(values));
}
