import { Agent } from "undici";
import { sleep, systemClock } from "../../lib/clock.ts";
import { measureStream, type StreamRecord } from "./stream.ts";
import type { Target } from "./target.ts";

export interface Load {
  /**
   * The number of concurrent streams. Each stream sends its next request as soon as the previous request has
   * ended.
   */
  readonly streams: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly records: readonly StreamRecord[];
  readonly elapsedSeconds: number;
}

/** The longest wait for a response, and between two pieces of a response. */
const silenceLimitMs = 60_000;
/**
 * The pause after a failed request, which would otherwise be repeated at a high rate and flood the server.
 */
const pauseAfterFailureMs = 100;

/**
 * Runs the streams until the time has passed, and then aborts the remaining streams. All streams send
 * requests until that time, so the measured rates are rates of full load.
 * @param signal ends the run early.
 * @param onRecord is called for each finished request.
 */
export async function runLoad(
  target: Target,
  { streams, seconds }: Load,
  signal: AbortSignal,
  onRecord: (record: StreamRecord) => void = () => undefined,
): Promise<LoadResult> {
  const agent = new Agent({ pipelining: 1, headersTimeout: silenceLimitMs, bodyTimeout: silenceLimitMs });
  const records: StreamRecord[] = [];
  const ending = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
  const texts = inTurn(target.texts);
  const startedAt = performance.now();
  const client = async () => {
    while (!ending.aborted) {
      const record = await measureStream(agent, target, texts(), ending);
      records.push(record);
      onRecord(record);
      if (record.outcome === "failed") await sleep(systemClock, pauseAfterFailureMs, ending);
    }
  };
  await Promise.all(Array.from({ length: streams }, client));
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  await agent.destroy();
  return { records, elapsedSeconds };
}

function inTurn(texts: readonly string[]): () => string {
  let next = 0;
  return () => texts[next++ % texts.length] ?? "";
}
