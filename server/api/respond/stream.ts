import { Readable } from "node:stream";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";

/** Bytes that are encoded ahead of the socket: about a second, so that a slow client slows the engine. */
const aheadBytes = 32 * 1024;

/**
 * Bytes as a response's body. They are pulled; if their source fails, the body and its socket are destroyed.
 */
export function bodyOf(bytes: AsyncIterable<Uint8Array | string>): Readable {
  return Readable.from(bytes, { objectMode: false, highWaterMark: aheadBytes });
}

/** The response as a stream of audio bytes. */
export function respondStream(
  speaking: Speaking,
  { rate }: Pick<SpeechRequest, "rate">,
  listener: Listener,
): Readable {
  return bodyOf(encodeSpeech(speaking, rate, listener));
}
