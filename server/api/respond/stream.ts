import { Readable } from "node:stream";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";

/** Bytes that are encoded in advance, about one second of audio. A slow client therefore slows the engine. */
const aheadBytes = 32 * 1024;

/**
 * Creates the body of a response. The body pulls the bytes from the source. If the source fails, the body and the
 * connection are destroyed.
 */
export function bodyOf(bytes: AsyncIterable<Uint8Array | string>): Readable {
  return Readable.from(bytes, { objectMode: false, highWaterMark: aheadBytes });
}

/** Creates the body of a response with encoded audio. */
export function respondStream(
  speaking: Speaking,
  { rate }: Pick<SpeechRequest, "rate">,
  listener: Listener,
): Readable {
  return bodyOf(encodeSpeech(speaking, rate, listener));
}
