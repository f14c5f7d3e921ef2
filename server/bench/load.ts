import { Agent } from "undici";
import { sleep, systemClock } from "../../lib/clock.ts";
import { measureStream, type StreamRecord } from "./stream.ts";
import type { Target } from "./target.ts";

export interface Load {
  /** Concurrent streams. Each sends its next request as soon as the last one has ended. */
  readonly streams: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly records: readonly StreamRecord[];
  readonly elapsedSeconds: number;
}

/** Longest wait for a response, and between two pieces of it. */
const silenceLimitMs = 60_000;
/** A rejected client waits, because failing quickly would flood the server. */
const pauseAfterFailureMs = 100;

/**
 * Keeps the streams busy until the time is up, then aborts the remaining ones, so that the rates are those of
 * full load.
 * @param signal ends the run early. @param onRecord called for each finished stream.
 */
export async function runLoad(
  target: Target,
  { streams, seconds }: Load,
  signal: AbortSignal,
  onRecord: (record: StreamRecord) => void = () => undefined,
): Promise<LoadResult> {
  const agent = new Agent({ pipelining: 1, headersTimeout: silenceLimitMs, bodyTimeout: silenceLimitMs });
  const records: StreamRecord[] = [];
  const over = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
  const texts = inTurn(target.texts);
  const startedAt = performance.now();
  const caller = async () => {
    while (!over.aborted) {
      const record = await measureStream(agent, target, texts(), over);
      records.push(record);
      onRecord(record);
      if (record.outcome === "failed") await sleep(systemClock, pauseAfterFailureMs, over);
    }
  };
  await Promise.all(Array.from({ length: streams }, caller));
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  await agent.destroy();
  return { records, elapsedSeconds };
}

function inTurn(texts: readonly string[]): () => string {
  let next = 0;
  return () => texts[next++ % texts.length] ?? "";
}
