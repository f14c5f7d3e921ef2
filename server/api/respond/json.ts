import type { Readable } from "node:stream";
import { Failure } from "../../contract/errors.ts";
import { formats } from "../request/formats.ts";
import type { MemoryReservation } from "../request/memory-budget.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import { base64Length, base64Of } from "./base64.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";
import { bodyOf } from "./stream.ts";

export interface JsonOptions {
  /** Highest number of bytes of audio. */
  readonly maxBytes: number;
  /** Memory for the audio until it is sent. */
  readonly hold: Hold;
  readonly listener: Listener;
}

/** Reserves this many bytes in total. @throws Failure `overloaded` if other requests hold too much. */
export type Hold = (bytes: number) => Promise<void>;

/** Reserves memory in steps. A repeated synthesis uses the memory of the discarded one. */
export function holdIn(memory: MemoryReservation): Hold {
  let room = 0;
  return async (bytes) => {
    for (; bytes > room; room += stepBytes) await memory.take(stepBytes);
  };
}

export interface JsonAnswer {
  /** Bytes of the body. */
  readonly length: number;
  readonly body: Readable;
}

const opening = '{"audioContent":"';
const closing = '"}';
/** Steps of the reservation. */
const stepBytes = 256 * 1024;

/**
 * The response `{"audioContent": base64}`, whose audio is a whole file (specification 4.2 and 4.3). The audio
 * is held until it is complete; its base64 text is not.
 * @throws Failure `audio_too_large` above `maxBytes` of audio, `overloaded` if other requests hold too much.
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
    `The speech is longer than ${maxBytes} bytes of audio, the most in one JSON answer; stream it with Accept: audio/wav or audio/pcm.`,
  );
}
