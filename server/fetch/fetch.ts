import { join } from "node:path";
import { type DownloadOptions, download } from "./download.ts";
import { withLock } from "./lock.ts";
import { type FetchPlanOptions, planOf } from "./plan.ts";
import { parseSource } from "./source.ts";

export interface FetchOptions extends Omit<FetchPlanOptions, "signal">, DownloadOptions {
  readonly source: string;
  readonly lockBeatMs?: number;
  readonly lockStaleMs?: number;
}

/**
 * Fetches the files of a source into the cache's folder. @throws FetchFailure with a sentence for the author
 * of the source
 */
export async function fetchModel(options: FetchOptions): Promise<{ files: number; fetched: number }> {
  const source = parseSource(options.source);
  const { folder, log, lockBeatMs: beatMs, lockStaleMs: staleMs } = options;
  const lock = {
    signal: options.signal,
    onWaiting: () => log.info({}, "another pod is fetching into this cache; waiting for it"),
    ...(beatMs !== undefined && { beatMs }),
    ...(staleMs !== undefined && { staleMs }),
  };
  return withLock(join(folder, ".fetch", "lock"), lock, async (signal) => {
    const plan = await planOf(source, { ...options, signal });
    let fetched = 0;
    for (const file of plan) {
      const outcome = await download(file, { ...options, signal });
      log.info({ file: file.path }, outcome === "there" ? "exists already" : "fetched and checked");
      if (outcome === "fetched") fetched++;
    }
    return { files: plan.length, fetched };
  });
}
