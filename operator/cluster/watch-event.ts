import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { type ApiError, apiErrorOf } from "./api-error.ts";

/** One line of a watch (Kubernetes API concepts, "Efficient detection of changes"). */
export type WatchEvent =
  | { kind: "present"; object: KubernetesObject }
  | { kind: "gone"; object: KubernetesObject }
  | { kind: "bookmark"; resourceVersion: string }
  | { kind: "error"; error: ApiError };

/**
 * The error for a line of a watch that is not a valid event. The rest of the stream is not read. The message
 * does not quote the line, because it may contain a Secret.
 */
export class BrokenWatch extends Error {
  override readonly name = "BrokenWatch";
}

/**
 * Parses one line of a watch. `path` and `secret` are for the message of an error event. Throws {@link
 * BrokenWatch} for an invalid line.
 */
export function parseWatchEvent(line: string, about: { path: string; secret: boolean }): WatchEvent {
  const { type, object } = parseLine(line);
  if (type === "ERROR") {
    const status = typeof object.code === "number" ? object.code : 500;
    const context = { method: "WATCH", ...about };
    return { kind: "error", error: apiErrorOf(context, status, JSON.stringify(object), undefined) };
  }
  const resourceVersion = versionOf(object);
  if (type === "BOOKMARK") return { kind: "bookmark", resourceVersion };
  if (!isManifest(object)) throw new BrokenWatch(`a watch event of type ${type} has no named object`);
  if (type === "ADDED" || type === "MODIFIED") return { kind: "present", object };
  if (type === "DELETED") return { kind: "gone", object };
  throw new BrokenWatch(`unknown type of watch event: ${type.slice(0, 40)}`);
}

function parseLine(line: string): { type: string; object: Record<string, unknown> } {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    // The parser's message is omitted, because it quotes the line, and the line may be a Secret.
    throw new BrokenWatch(`a line of a watch is not valid JSON (${line.length} characters)`);
  }
  const { type, object } = (event ?? {}) as { type?: unknown; object?: unknown };
  if (typeof type !== "string" || typeof object !== "object" || object === null) {
    throw new BrokenWatch("a line of a watch is not an event");
  }
  return { type, object: object as Record<string, unknown> };
}

function versionOf(object: Record<string, unknown>): string {
  const version = (object.metadata as { resourceVersion?: unknown } | undefined)?.resourceVersion;
  if (typeof version !== "string" || version === "")
    throw new BrokenWatch("a watch event has no resource version");
  return version;
}

function isManifest(object: Record<string, unknown>): object is KubernetesObject {
  return typeof (object.metadata as { name?: unknown } | undefined)?.name === "string";
}
