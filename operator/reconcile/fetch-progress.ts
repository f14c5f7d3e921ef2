import {
  type CacheProgress,
  cacheProgressPath,
  readCacheProgress,
} from "../../config/contract/model-cache.ts";
import { ports } from "../../config/contract/names.ts";
import type { Pod } from "../facts/observed.ts";

const responseWithinMs = 2_000;
const mostBytes = 16 * 1024;

/** Reads the progress of a pod that fetches model files. Throws if the pod does not respond in time. */
export async function readFetchProgress({ status }: Pod, port: number = ports.model): Promise<CacheProgress> {
  const ip = status?.podIP ?? "";
  const host = ip.includes(":") ? `[${ip}]` : ip;
  const response = await fetch(`http://${host}:${port}${cacheProgressPath}`, {
    signal: AbortSignal.timeout(responseWithinMs),
  });
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > mostBytes)
      throw new Error(`GET ${cacheProgressPath} responded with more than ${mostBytes} bytes`);
    pieces.push(piece);
  }
  const progress = response.ok ? readCacheProgress(Buffer.concat(pieces).toString("utf8")) : undefined;
  if (progress === undefined)
    throw new Error(`GET ${cacheProgressPath} responded with status ${response.status} and no progress`);
  return progress;
}
