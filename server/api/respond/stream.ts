import { Readable } from "node:stream";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";

/**
 * The number of bytes that are encoded in advance: about one second of audio. The limit lets a slow client
 * slow the engine.
 */
const aheadBytes = 32 * 1024;

/**
 * Creates the body of a response. The body pulls the bytes from the source. A failure of the source destroys
 * the body and the connection.
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
