import type { WordTimestamp } from "../../contract/speech.ts";
import type { ArrivedText, ContextId, TextMarkup } from "./text-session.ts";

/** A message from a client of a JSON or text socket. */
export type ClientMessage =
  | ({ readonly kind: "text" } & Required<ArrivedText>)
  | { readonly kind: "operation"; readonly operation: Operation }
  | { readonly kind: "malformed"; readonly problem: string };

export const clientOperations = ["flush", "clear", "eos"] as const;
export type Operation = (typeof clientOperations)[number];

/** The operations as plain text. Clients of `/ws` and old clients of `/ws2` send this form. */
const tokens: ReadonlyMap<string, Operation> = new Map([
  ["<FLUSH>", "flush"],
  ["<CLEAR>", "clear"],
  ["<EOS>", "eos"],
]);

/**
 * Parses a frame of `/ws`. A frame that contains only a token is an operation. Every other frame is text.
 */
export function readTextFrame(frame: string): ClientMessage {
  const operation = tokens.get(frame.trim());
  return operation
    ? { kind: "operation", operation }
    : { kind: "text", text: frame, contextId: null, markup: {} };
}

/** Parses a frame of `/ws2` and `/ws3`. Unknown fields are ignored, and `null` means absent. */
export function readJsonFrame(frame: string): ClientMessage {
  const operation = tokens.get(frame.trim());
  if (operation) return { kind: "operation", operation };
  const message = parseObject(frame);
  if (!message)
    return {
      kind: "malformed",
      problem: "The message is not a JSON object; send one object in each message.",
    };
  if (!isAbsent(message.operation)) return readOperation(message.operation);
  const { text, contextId } = message;
  if (typeof text !== "string") return { kind: "malformed", problem: "text must be a string." };
  if (!isAbsent(contextId) && typeof contextId !== "string") {
    return { kind: "malformed", problem: "contextId must be a string or null." };
  }
  return { kind: "text", text, contextId: contextId ?? null, markup: readMarkup(message) };
}

function readOperation(operation: unknown): ClientMessage {
  const known = clientOperations.find((name) => name === operation);
  return known
    ? { kind: "operation", operation: known }
    : { kind: "malformed", problem: `operation must be one of ${clientOperations.join(", ")}.` };
}

/** Reads the two options that a client may set for a single text. Other options apply to the whole socket. */
function readMarkup({ phonemizeBetweenBrackets, inlineSpeedAlpha }: JsonObject): TextMarkup {
  return {
    ...(typeof phonemizeBetweenBrackets === "boolean" && { phonemizeBetweenBrackets }),
    ...(typeof inlineSpeedAlpha === "string" && { inlineSpeedAlpha }),
  };
}

type JsonObject = Readonly<Record<string, string | number | boolean | object | null | undefined>>;

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as JsonObject)
      : undefined;
  } catch {
    return undefined;
  }
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/**
 * Formats the events of a JSON socket. The server must not send other types, because clients treat an unknown
 * type as a broken connection.
 */
export const jsonEvents = {
  chunk: (audio: Uint8Array, contextId: ContextId) =>
    JSON.stringify({ type: "chunk", data: base64(audio), contextId }),
  timestamps: (words: readonly WordTimestamp[], contextId: ContextId) =>
    JSON.stringify({
      type: "timestamps",
      word_timestamps: {
        words: words.map(({ word }) => word),
        start: words.map(({ start }) => start),
        end: words.map(({ end }) => end),
      },
      contextId,
    }),
  /**
   * Formats the end of a turn.
   * @param withFlag adds `done: true`, which clients of `/ws2` read.
   */
  done: (contextId: ContextId, withFlag: boolean) =>
    JSON.stringify({ type: "done", ...(withFlag && { done: true }), contextId }),
  /**
   * Formats an error.
   * @param contextId the context of the error, or undefined if the error belongs to no context.
   */
  error: (message: string, contextId: ContextId | undefined) =>
    JSON.stringify({ type: "error", message, ...(contextId !== undefined && { contextId }) }),
};

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
