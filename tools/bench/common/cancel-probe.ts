import { randomBytes } from "node:crypto";
import { WebSocket } from "ws";
import type { ReceivedSpan } from "../../../test/support/server/otlp.ts";
import type { Served } from "./load.ts";

/** A text of several phrases, so that an engine still synthesizes the text when the first audio arrives. */
const text = `${"The quick brown fox jumps over the lazy dog, and then it rests for a while. ".repeat(8)}`;
/** The longest wait for the end of one context. Under full load a context waits for an engine. */
const contextLimitMs = 30_000;

/** One context that a client cancelled at its first audio. */
export interface CancelledContext {
  readonly traceId: string;
  /** The time at which the client sent `clear`, in milliseconds since the epoch. */
  readonly clearedAtMs: number;
  /** The milliseconds from `clear` to the `done` after the last audio. */
  readonly silenceMs: number;
}

/** The milliseconds from `clear` until the model tier is free. */
export interface FreeTimes {
  /** The milliseconds until the stream no longer counts for the capacity of the model tier. */
  readonly slotMs: readonly number[];
  /**
   * The milliseconds until the engine process can run another utterance, for contexts that occupied an engine
   * process when the client cancelled them.
   */
  readonly processMs: readonly number[];
}

/**
 * Cancels contexts until the time has elapsed. Each context has its own socket and its own trace.
 * @param clients the number of contexts at the same time.
 */
export async function cancelContexts(
  { url, key }: Served,
  voice: { readonly model: string; readonly speaker: string },
  { clients, seconds }: { readonly clients: number; readonly seconds: number },
): Promise<CancelledContext[]> {
  const query = `modelId=${voice.model}&speaker=${voice.speaker}&audioFormat=pcm&samplingRate=24000`;
  const address = `${url.replace("http", "ws")}/ws3?${query}`;
  const endMs = performance.now() + seconds * 1000;
  const cancelled: CancelledContext[] = [];
  const client = async () => {
    while (performance.now() < endMs) {
      const context = await cancelContext(address, key);
      if (context) cancelled.push(context);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return cancelled;
}

/**
 * Cancels one context at its first audio.
 * @returns undefined if the server rejected the context.
 */
function cancelContext(address: string, key: string): Promise<CancelledContext | undefined> {
  const { promise, resolve } = Promise.withResolvers<CancelledContext | undefined>();
  const traceId = randomBytes(16).toString("hex");
  const socket = new WebSocket(address, {
    headers: {
      authorization: `Bearer ${key}`,
      traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-01`,
    },
    perMessageDeflate: false,
  });
  const late = setTimeout(() => socket.terminate(), contextLimitMs);
  let cleared: { readonly epochMs: number; readonly startedAt: number } | undefined;
  socket.on("open", () => {
    socket.send(JSON.stringify({ text, contextId: "cancelled" }));
    socket.send(JSON.stringify({ operation: "flush" }));
  });
  socket.on("message", (data) => {
    const { type } = JSON.parse(String(data)) as { type: string };
    if (type === "chunk" && !cleared) {
      cleared = { epochMs: Date.now(), startedAt: performance.now() };
      socket.send(JSON.stringify({ operation: "clear" }));
    } else if (type === "done" && cleared) {
      const silenceMs = performance.now() - cleared.startedAt;
      resolve({ traceId, clearedAtMs: cleared.epochMs, silenceMs });
      socket.close();
    }
  });
  socket.on("error", () => socket.terminate());
  socket.on("close", () => {
    clearTimeout(late);
    resolve(undefined); // After a cancellation, this call has no effect.
  });
  return promise;
}

/** Returns how long the cancelled contexts occupied the model tier, from its spans. */
export function freeTimes(contexts: readonly CancelledContext[], spans: readonly ReceivedSpan[]): FreeTimes {
  const byTrace = Map.groupBy(spans, ({ traceId }) => traceId);
  const slotMs: number[] = [];
  const processMs: number[] = [];
  for (const { traceId, clearedAtMs } of contexts) {
    const trace = byTrace.get(traceId) ?? [];
    const slot = lastEnd(
      trace.filter(({ name, kind }) => name === "POST /invocations" && kind === serverKind),
    );
    const process = lastEnd(trace.filter(({ name }) => name === "engine process"));
    if (slot !== undefined) slotMs.push(Math.max(0, slot - clearedAtMs));
    if (process !== undefined && process > clearedAtMs) processMs.push(process - clearedAtMs);
  }
  return { slotMs, processMs };
}

const serverKind = 2;

function lastEnd(spans: readonly ReceivedSpan[]): number | undefined {
  return spans.length === 0 ? undefined : Math.max(...spans.map(({ endMs }) => endMs));
}
