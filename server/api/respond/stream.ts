import { Readable } from "node:stream";
import type { Speech } from "../models.ts";
import type { SpeechRequest } from "../request.ts";
import { type Format, formats } from "../variants.ts";
import { encodeSpeech } from "./audio.ts";

/** Bytes encoded ahead of the socket: about a second, so a slow listener slows the engine. */
const aheadBytes = 32 * 1024;

/** The answer as a stream of audio bytes; when the model fails it is destroyed, and the socket with it. */
export function respondStream(
  speech: Speech,
  { format, rate }: SpeechRequest,
  onSamples: (count: number) => void,
): Readable {
  const encoder = (formats[format] as Format).createEncoder(rate);
  return Readable.from(encodeSpeech(speech, rate, encoder, onSamples), {
    objectMode: false,
    highWaterMark: aheadBytes,
  });
}
