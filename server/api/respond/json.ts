import type { Readable } from "node:stream";
import { Failure } from "../../contract/errors.ts";
import { formats } from "../request/formats.ts";
import type { MemoryReservation } from "../request/memory-budget.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";
import { bodyOf } from "./stream.ts";

interface JsonOptions {
  /** The highest number of bytes of audio. */
  readonly maxBytes: number;
  /** Reserves memory for the audio until the response is sent. */
  readonly hold: Hold;
  readonly listener: Listener;
}

/**
 * Increases the reservation to this total number of bytes.
 * @throws Failure `overloaded` if other requests hold too much memory.
 */
type Hold = (bytes: number) => Promise<void>;

/** Reserves memory in steps. A repeated synthesis reuses the memory of the discarded audio. */
export function holdIn(memory: MemoryReservation): Hold {
  let reserved = 0;
  return async (bytes) => {
    for (; bytes > reserved; reserved += stepBytes) await memory.take(stepBytes);
  };
}

export interface JsonAnswer {
  /** The number of bytes of the body. */
  readonly length: number;
  readonly body: Readable;
}

const opening = '{"audioContent":"';
const closing = '"}';
/** The size of one step of the reservation. */
const stepBytes = 256 * 1024;

/**
 * Creates the response `{"audioContent": base64}` with a complete audio file (specification 4.2 and 4.3). The
 * whole audio is kept in memory, but the base64 text is created piece by piece.
 * @throws Failure `audio_too_large` if the audio exceeds `maxBytes`, or `overloaded` if other requests hold
 * too much memory.
 */
export async function respondJson(
  speaking: Speaking,
  { format: name, rate }: Pick<SpeechRequest, "format" | "rate">,
  { maxBytes, hold, listener }: JsonOptions,
): Promise<JsonAnswer> {
  const { file } = formats[name];
  let samples = 0;
  const onEncoded: Listener["onEncoded"] = (count, bytes, workMs) => {
    samples += count;
    listener.onEncoded(count, bytes, workMs);
  };
  const pieces = encodeSpeech(speaking, rate, { ...listener, onEncoded });
  const audio = await collect(pieces, maxBytes, hold);
  const parts = file ? [file.header(rate, audio, samples), audio] : [audio];
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return { length: opening.length + base64Length(bytes) + closing.length, body: bodyOf(jsonOf(parts)) };
}

async function* jsonOf(parts: readonly Uint8Array[]): AsyncGenerator<string, void, void> {
  yield opening;
  yield* base64Of(parts);
  yield closing;
}

async function collect(pieces: AsyncIterable<Uint8Array>, maxBytes: number, hold: Hold): Promise<Buffer> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    await hold(bytes);
    kept.push(piece);
  }
  return Buffer.concat(kept, bytes);
}

function tooLarge(maxBytes: number): Failure {
  return new Failure(
    "audio_too_large",
    `The audio is larger than ${maxBytes} bytes, the limit of one JSON response; request a stream with Accept: audio/wav or audio/pcm.`,
  );
}

/**
 * The number of bytes of one step of base64. The number is a multiple of three, so that the texts can be
 * concatenated.
 */
const encodedStepBytes = 3 * 16 * 1024;

/** Returns the length of the base64 text for a number of bytes. */
export function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

/** Encodes all parts as one base64 text, and yields the text piece by piece. */
export function* base64Of(parts: Iterable<Uint8Array>): Generator<string, void, void> {
  let rest: Buffer = Buffer.alloc(0); // At most two bytes wait for the next part.
  for (const part of parts) {
    const missing = (3 - rest.length) % 3;
    const first = Buffer.concat([rest, part.subarray(0, missing)]);
    if (first.length === 3) yield first.toString("base64");
    const whole = Buffer.from(part.buffer, part.byteOffset, part.length).subarray(missing);
    const end = whole.length - (whole.length % 3);
    for (let at = 0; at < end; at += encodedStepBytes) {
      yield whole.toString("base64", at, Math.min(end, at + encodedStepBytes));
    }
    rest = first.length === 3 || missing === 0 ? whole.subarray(end) : first;
  }
  if (rest.length > 0) yield rest.toString("base64");
}
