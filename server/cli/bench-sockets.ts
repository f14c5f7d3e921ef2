import type { OptionValues } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Load, type LoadResult, runLoad } from "../bench/load.ts";
import type { Series } from "../bench/plot.ts";
import { summarizeRun } from "../bench/report.ts";
import { runSocketLoad, type SocketLoadResult } from "../bench/sockets/socket-load.ts";
import { joinRuns, type SocketReport, summarizeSockets } from "../bench/sockets/socket-report.ts";
import type { SocketTarget } from "../bench/sockets/speaking-socket.ts";
import { writeText } from "../bench/sockets/written-text.ts";
import type { Target } from "../bench/target.ts";

export const socketOptions = {
  ws: {
    help: "measure WebSockets (/ws3), alternating with HTTP requests of the same first sentences; --streams is the number of sockets",
  },
  "ws-only": { help: "with --ws: send no HTTP requests" },
  pace: { value: "N", help: "with --ws: words per second of each text; default: all at once" },
} as const;

export const socketNotes = [
  "--ws: the time to first audio starts when the last word of the first sentence is sent. Every fourth context is cancelled at its first audio.",
  "--ws: a gap is the time between two chunks of one synthesis. The time to cancel a context starts with `clear` and ends with the `done` after the last audio.",
].join("\n");

/** The sampling rate in Hz for both protocols, because their default rates differ. */
const defaultRate = 24_000;
/**
 * The number of time windows for each protocol. The windows alternate, so that the load of the machine
 * affects both protocols.
 */
const turns = 2;

/**
 * Returns the target with the sampling rate for both protocols.
 * @throws UsageError if an option does not apply to WebSockets.
 */
export function readSocketTarget(options: OptionValues, target: Target): SocketTarget {
  const other = ["gpu", "openai"].find((flag) => options[flag] !== undefined);
  if (other !== undefined) throw new UsageError(`--ws cannot be combined with --${other}.`);
  if (target.accept !== "audio/pcm")
    throw new UsageError(
      "--ws measures audio/pcm only; omit --accept, and set the sampling rate with --rate.",
    );
  return { ...target, rate: target.rate ?? defaultRate };
}

/**
 * Measures WebSockets and HTTP in alternating time windows.
 * @param count is called for each finished context and request.
 */
export async function measureSockets(
  target: SocketTarget,
  { streams, seconds }: Load,
  { pace, withHttp }: { readonly pace: number | undefined; readonly withHttp: boolean },
  signal: AbortSignal,
  count: (record: LoadResult["records"][number]) => void,
): Promise<SocketReport> {
  const sentences = { ...target, texts: target.texts.map((text) => writeText(text).firstSentence) };
  const load = { streams, seconds: withHttp ? seconds / (2 * turns) : seconds, pace };
  const [overSockets, overHttp]: [SocketLoadResult[], LoadResult[]] = [[], []];
  for (let turn = 0; turn < (withHttp ? turns : 1) && !signal.aborted; turn++) {
    overSockets.push(await runSocketLoad(target, load, signal, ({ stream }) => count(stream)));
    if (withHttp) overHttp.push(await runLoad(sentences, load, signal, count));
  }
  const http = withHttp ? summarizeHttp(streams, overHttp) : undefined;
  return summarizeSockets(streams, joinRuns(overSockets), http);
}

function summarizeHttp(streams: number, runs: readonly LoadResult[]) {
  const elapsedSeconds = runs.reduce((sum, run) => sum + run.elapsedSeconds, 0);
  return summarizeRun(
    streams,
    elapsedSeconds,
    runs.flatMap(({ records }) => records),
  );
}

/** Returns the series of the plot: WebSockets, and HTTP if it was measured. */
export function plotSeries({ contexts, http }: SocketReport): Series[] {
  return [{ name: "WebSockets", run: contexts }, ...(http ? [{ name: "HTTP", run: http }] : [])];
}
