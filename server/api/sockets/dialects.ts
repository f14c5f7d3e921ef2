import type { WordTimestamp } from "../../contract/speech.ts";
import type { SocketEndpoint } from "./endpoint.ts";
import { type ClientMessage, jsonEvents, readJsonFrame, readTextFrame } from "./messages.ts";
import type { ContextId } from "./text-session.ts";

/**
 * Reads and formats the messages of one of the older protocols. The methods for events return undefined if
 * the protocol has no message for the event.
 */
export interface Dialect {
  /** Whether a comma also ends a segment. */
  readonly cutsAtCommas: boolean;
  read(frame: string): ClientMessage;
  chunk(audio: Uint8Array, contextId: ContextId): string | Uint8Array;
  timestamps(words: readonly WordTimestamp[], contextId: ContextId): string | undefined;
  done(contextId: ContextId): string | undefined;
  error(message: string, contextId?: ContextId): string | undefined;
}

const json: Dialect = {
  cutsAtCommas: false,
  read: readJsonFrame,
  chunk: jsonEvents.chunk,
  timestamps: jsonEvents.timestamps,
  done: (contextId) => jsonEvents.done(contextId, false),
  error: (message, contextId) => jsonEvents.error(message, contextId),
};

const binary: Dialect = {
  cutsAtCommas: true,
  read: readTextFrame,
  chunk: (audio) => audio,
  timestamps: () => undefined,
  done: () => undefined,
  error: () => undefined,
};

const dialects: Readonly<Record<SocketEndpoint["route"], Dialect>> = {
  "/ws": binary,
  "/ws2": { ...json, done: (contextId) => jsonEvents.done(contextId, true) },
  "/ws3": json,
};

export function dialectOf({ route }: Pick<SocketEndpoint, "route">): Dialect {
  return dialects[route];
}
