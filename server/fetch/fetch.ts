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
 * Fetches the files of a source into the folder of the cache.
 * @throws FetchFailure with a message for the author of the source.
 */
export async function fetchModel(options: FetchOptions): Promise<{ files: number; fetched: number }> {
  const source = parseSource(options.source);
  const { folder, log, lockBeatMs: beatMs, lockStaleMs: staleMs } = options;
  const lock = {
    signal: options.signal,
    onWaiting: () =>
      log.info({}, "another pod is fetching into this cache; waiting until the pod has finished"),
    ...(beatMs !== undefined && { beatMs }),
    ...(staleMs !== undefined && { staleMs }),
  };
  return withLock(join(folder, ".fetch", "lock"), lock, async (signal) => {
    const plan = await planOf(source, { ...options, signal });
    let fetched = 0;
    for (const file of plan) {
      const outcome = await download(file, { ...options, signal });
      log.info(
        { file: file.path },
        outcome === "there" ? "the file already exists" : "the file was fetched and verified",
      );
      if (outcome === "fetched") fetched++;
    }
    return { files: plan.length, fetched };
  });
}
