import { Readable } from "node:stream";
import { formats } from "../formats.ts";
import type { Speech } from "../models.ts";
import type { SpeechRequest } from "../request.ts";
import { encodeSpeech, type Listener } from "./audio.ts";

/** Bytes encoded ahead of the socket: about a second, so a slow listener slows the engine. */
const aheadBytes = 32 * 1024;

/** Bytes as an answer's body: pulled, and when their source fails it is destroyed, and the socket with it. */
export function bodyOf(bytes: AsyncIterable<Uint8Array | string>): Readable {
  return Readable.from(bytes, { objectMode: false, highWaterMark: aheadBytes });
}

/** The answer as a stream of audio bytes. */
export function respondStream(
  speech: Speech,
  { format, rate }: Pick<SpeechRequest, "format" | "rate">,
  listener: Listener,
): Readable {
  return bodyOf(encodeSpeech(speech, rate, formats[format].createEncoder, listener));
}
