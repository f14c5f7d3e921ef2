/**
 * The contract of the operator and the pod of a TtsModelCache. The operator passes a plan to `svc-tts cache
 * fill`, reads its progress over HTTP, and reads its result from the termination message of the container.
 */

/** The contents of a cache: a preset of the server, or sources. */
export interface CachePlan {
  /** The UID of the TtsModelCache. Several caches can share a claim, and each has its own record of its files. */
  readonly owner?: string;
  readonly preset?: string;
  /** Whether the user complies with the license of a preset that restricts commercial use. */
  readonly acceptLicense?: boolean;
  readonly sources?: readonly CachePlanSource[];
}

export interface CachePlanSource {
  readonly url: string;
  readonly path?: string;
  readonly sha256?: string;
  readonly endpoint?: string;
  /** Prefix of the environment variables with the credentials of this source. */
  readonly credentials?: string;
}

/** The path of the progress, at the port of a model container. */
export const cacheProgressPath = "/progress";

export interface CacheProgress {
  /** The number of complete files, and the number of all files. */
  readonly files: number;
  readonly totalFiles: number;
  /** Bytes of the complete files and of the file that is being fetched. */
  readonly bytes: number;
  /** It is absent while a source has not reported the size of a file. */
  readonly totalBytes?: number;
  readonly bytesPerSecond: number;
}

/** The reasons why a cache could not be filled. */
export const cacheFailures = [
  "DigestMismatch",
  "DiskFull",
  "PresetUnknown",
  "FetchFailed",
  "FetchInterrupted",
] as const;
export type CacheFailure = (typeof cacheFailures)[number];

export type CacheResult =
  | {
      readonly outcome: "filled";
      readonly files: number;
      readonly bytes: number;
      /**
       * The number of files that this attempt fetched, and that it removed because the plan does not name
       * them.
       */
      readonly fetched: number;
      readonly removed: number;
    }
  | { readonly outcome: "failed"; readonly reason: CacheFailure; readonly message: string };

/** The longest message of a result, because the kubelet cuts termination messages at 4096 bytes. */
export const longestCacheMessage = 1_500;

/** Returns the result in a termination message, or undefined for any other text. */
export function readCacheResult(text: string | undefined): CacheResult | undefined {
  const found = parsed(text ?? "");
  if (found?.outcome === "filled" && areCounts(found.files, found.bytes, found.fetched, found.removed))
    return found as unknown as CacheResult;
  const isFailure =
    found?.outcome === "failed" &&
    cacheFailures.some((reason) => reason === found.reason) &&
    typeof found.message === "string";
  return isFailure ? (found as unknown as CacheResult) : undefined;
}

/** Returns the progress in a response, or undefined for any other text. */
export function readCacheProgress(text: string): CacheProgress | undefined {
  const found = parsed(text);
  if (!found || !areCounts(found.files, found.totalFiles, found.bytes, found.bytesPerSecond))
    return undefined;
  if (found.totalBytes !== undefined && !areCounts(found.totalBytes)) return undefined;
  return found as unknown as CacheProgress;
}

function areCounts(...values: unknown[]): boolean {
  return values.every((value) => Number.isSafeInteger(value) && (value as number) >= 0);
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
