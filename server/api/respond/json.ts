import { Failure } from "../../errors.ts";
import { formats } from "../formats.ts";
import type { Speech } from "../models.ts";
import type { SpeechRequest } from "../request.ts";
import { encodeSpeech, type Listener } from "./audio.ts";

/**
 * The answer `{"audioContent": base64}`, its audio a whole file (specification 4.2 and 4.3).
 * @throws Failure `audio_too_large` above `maxBytes` of audio.
 */
export async function respondJson(
  speech: Speech,
  { format: name, rate }: Pick<SpeechRequest, "format" | "rate">,
  maxBytes: number,
  listener: Listener,
): Promise<string> {
  const { createEncoder, file } = formats[name];
  let samples = 0;
  const onSamples = (count: number) => {
    samples += count;
    listener.onSamples(count);
  };
  const pieces = encodeSpeech(speech, rate, file?.createEncoder ?? createEncoder, { ...listener, onSamples });
  const audio = await collect(pieces, maxBytes);
  const whole = file ? Buffer.concat([file.header(rate, audio, samples), audio]) : audio;
  return `{"audioContent":"${whole.toString("base64")}"}`;
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
