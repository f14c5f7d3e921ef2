import { createPcmEncoder } from "../../audio/pcm.ts";
import { Failure } from "../../errors.ts";
import type { Speech } from "../models.ts";
import type { SpeechRequest } from "../request.ts";
import { type Format, formats } from "../variants.ts";
import { encodeSpeech } from "./audio.ts";

/**
 * The answer `{"audioContent": base64}`, its audio a whole file (specification 4.2 and 4.3).
 * @throws Failure `audio_too_large` above `maxBytes` of audio.
 */
export async function respondJson(
  speech: Speech,
  { format: name, rate }: SpeechRequest,
  maxBytes: number,
  onSamples: (count: number) => void,
): Promise<string> {
  const format = formats[name] as Format;
  const encoder = format.fileHeader ? createPcmEncoder() : format.createEncoder(rate);
  const audio = await collect(encodeSpeech(speech, rate, encoder, onSamples), maxBytes);
  const header = format.fileHeader?.(rate, audio.length);
  const file = header ? Buffer.concat([header, audio]) : audio;
  return `{"audioContent":"${file.toString("base64")}"}`;
}

async function collect(pieces: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > maxBytes) {
      throw new Failure(
        "audio_too_large",
        `The speech is longer than ${maxBytes} bytes of audio, the most in one JSON answer; stream it with Accept: audio/wav or audio/pcm.`,
      );
    }
    kept.push(piece);
  }
  return Buffer.concat(kept, bytes);
}
