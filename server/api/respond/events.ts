import type { Clock } from "../../../lib/clock.ts";
import { Failure, toProblem } from "../../contract/errors.ts";
import type { WordTimestamp } from "../../contract/speech.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";

export const eventStreamType = "text/event-stream";

/** Formats the events of one protocol. Each method returns the text of one or more events. */
export interface EventShape {
  /**
   * Formats one chunk of the file.
   * @param base64 the encoded chunk. Each chunk can be decoded separately, and the decoded chunks form the
   * file.
   */
  chunk(base64: string): string;
  /** Formats the events after the last chunk. */
  finished(words: readonly WordTimestamp[]): string;
  /** Formats the event that replaces `finished` if the model fails during the stream. */
  failed(failure: Failure): string;
}

/** Formats a server-sent event with one line of JSON. */
export function eventText(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/**
 * Formats the events of specification 2.2 and 4.1. The specification defines no error event, so `error` contains a
 * problem document.
 */
export function speechEvents(requestId: string): EventShape {
  return {
    chunk: (data) => eventText("chunk", { data }),
    finished: (words) =>
      eventText("timestamps", { word_timestamps: columns(words) }) + eventText("done", { done: true }),
    failed: (failure) => eventText("error", toProblem(failure, requestId)),
  };
}

function columns(words: readonly WordTimestamp[]) {
  return {
    words: words.map(({ word }) => word),
    start: words.map(({ start }) => start),
    end: words.map(({ end }) => end),
  };
}

export interface EventsOptions {
  readonly shape: EventShape;
  readonly listener: Listener;
  /**
   * The generator calls this function when the stream fails, because the status of the response was already
   * sent.
   */
  readonly onFailure: (failure: Failure) => void;
}

/**
 * Yields speech as events. A complete stream has at least one chunk and then the final events. A failed
 * stream ends with the error.
 */
export async function* respondEvents(
  speaking: Speaking,
  { rate }: Pick<SpeechRequest, "rate">,
  { shape, listener, onFailure }: EventsOptions,
): AsyncGenerator<string, void, void> {
  const words: WordTimestamp[] = [];
  const onWords = (more: readonly WordTimestamp[]) => {
    for (const word of more) words.push(word);
  };
  const pieces = encodeSpeech(speaking, rate, { ...listener, onWords });
  let chunks = 0;
  try {
    for await (const piece of pieces) {
      chunks += 1;
      yield shape.chunk(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("base64"));
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    onFailure(error);
    yield shape.failed(error);
    return;
  }
  if (chunks === 0) yield shape.chunk("");
  yield shape.finished(words);
}

/** A comment of an event stream, which clients ignore. */
const heartbeat = ":\n\n";

/**
 * Yields the same events, and a comment after each period without an event, because proxies close silent
 * connections. The first comment follows the first event, because the response can become an error document
 * until that event.
 */
export async function* withHeartbeats(
  events: AsyncIterable<string>,
  silenceMs: number,
  clock: Clock,
): AsyncGenerator<string, void, void> {
  const iterator = events[Symbol.asyncIterator]();
  let next = iterator.next();
  try {
    let { done, value } = await next;
    while (!done) {
      yield value;
      next = iterator.next();
      while (!(await settlesWithin(next, silenceMs, clock))) yield heartbeat;
      ({ done, value } = await next);
    }
  } finally {
    // If the client disconnects, no code awaits this promise any more, and its error would have no handler.
    next.catch(() => undefined);
    await iterator.return?.();
  }
}

async function settlesWithin(promise: Promise<unknown>, limitMs: number, clock: Clock): Promise<boolean> {
  const { promise: tooLate, resolve } = Promise.withResolvers<false>();
  const cancel = clock.after(limitMs, () => resolve(false));
  try {
    return await Promise.race([promise.then(() => true), tooLate]);
  } finally {
    cancel();
  }
}
