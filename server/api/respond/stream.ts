import { Readable } from "node:stream";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech, type Listener, type Speaking } from "./encode-speech.ts";

/** Bytes encoded ahead of the socket: about a second, so a slow listener slows the engine. */
const aheadBytes = 32 * 1024;

/** Bytes as an answer's body: pulled, and when their source fails it is destroyed, and the socket with it. */
export function bodyOf(bytes: AsyncIterable<Uint8Array | string>): Readable {
  return Readable.from(bytes, { objectMode: false, highWaterMark: aheadBytes });
}

/** The answer as a stream of audio bytes. */
export function respondStream(
  speaking: Speaking,
  { rate }: Pick<SpeechRequest, "rate">,
  listener: Listener,
): Readable {
  return bodyOf(encodeSpeech(speaking, rate, listener));
}
