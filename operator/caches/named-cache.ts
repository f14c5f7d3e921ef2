import { modelCacheFinalizer } from "../../config/contract/names.ts";
import type { NamedModelCache, TtsModelCache } from "../facts/observed.ts";

/** Returns the state of the cache that a pool names. `cache` is undefined if it does not exist. */
export function namedModelCache(name: string, cache: TtsModelCache | undefined): NamedModelCache {
  if (cache === undefined) {
    const message = `TtsModelCache ${name} does not exist. Create it, or change cache.name. Running pods continue.`;
    return { claimName: undefined, problem: { reason: "ModelCacheNotFound", message } };
  }
  const { status, metadata } = cache;
  const isKept = metadata.finalizers?.includes(modelCacheFinalizer) === true;
  const isUsable = status?.fetched !== undefined && isKept && metadata.deletionTimestamp === undefined;
  const ready = status?.conditions.find(({ type }) => type === "Ready");
  const stalled = status?.conditions.find(({ type }) => type === "Stalled");
  const claimName = isUsable ? status.claimName : undefined;
  if (metadata.deletionTimestamp !== undefined)
    return { claimName, problem: notReady(name, stalled?.reason ?? "InUse", stalled?.message) };
  if (ready?.status === "True" && claimName !== undefined) return { claimName, problem: undefined };
  return { claimName, problem: notReady(name, ready?.reason ?? "Creating", ready?.message) };
}

function notReady(
  name: string,
  reason: string,
  message = "the operator has not reconciled it yet",
): {
  readonly reason: "ModelCacheNotReady";
  readonly message: string;
} {
  return {
    reason: "ModelCacheNotReady",
    message: `TtsModelCache ${name} is not ready (${reason}): ${message}`,
  };
}
