import type { Encoder } from "../../audio/encoder.ts";
import { createRateConverter } from "../../audio/resample.ts";
import type { Speech } from "../models.ts";

/**
 * Speech as the bytes of its answer: resampled, encoded, pulled piece by piece.
 * @param rate Hz of the answer. @param onSamples told how many samples each piece holds.
 * @throws Failure when the model fails on the way.
 */
export async function* encodeSpeech(
  speech: Speech,
  rate: number,
  encoder: Encoder,
  onSamples: (count: number) => void,
): AsyncGenerator<Uint8Array, void, void> {
  const converter = createRateConverter(speech.rate, rate);
  for await (const frame of speech.frames) {
    if (frame.kind !== "audio") continue;
    const samples = converter.push(frame.samples);
    onSamples(samples.length);
    const bytes = encoder.encode(samples);
    if (bytes.length > 0) yield bytes;
  }
  const rest = converter.finish();
  onSamples(rest.length);
  for (const bytes of [encoder.encode(rest), encoder.finish()]) if (bytes.length > 0) yield bytes;
}
