import type { Encoder } from "../../audio/encoder.ts";
import { createRateConverter } from "../../audio/resample.ts";
import type { WordTime } from "../../speech.ts";
import type { Speech } from "../models.ts";

/** What is told of speech on its way out. */
export interface Listener {
  /** How many samples, at the answer's rate, were encoded. */
  onSamples(count: number): void;
  /** Word times are seconds, which no change of rate moves. */
  onWords?(words: readonly WordTime[]): void;
}

/**
 * Speech as the bytes of its answer: resampled, encoded, pulled piece by piece.
 * @param rate Hz of the answer.
 * @throws Failure when the model fails on the way.
 */
export async function* encodeSpeech(
  speech: Speech,
  rate: number,
  createEncoder: (rate: number) => Encoder | Promise<Encoder>,
  listener: Listener,
): AsyncGenerator<Uint8Array, void, void> {
  const encoder = await createEncoder(rate);
  try {
    yield* encodeAll(speech, rate, encoder, listener);
  } finally {
    encoder.close?.();
  }
}

async function* encodeAll(
  speech: Speech,
  rate: number,
  encoder: Encoder,
  listener: Listener,
): AsyncGenerator<Uint8Array, void, void> {
  const converter = createRateConverter(speech.rate, rate);
  for await (const frame of speech.frames) {
    if (frame.kind === "words") {
      listener.onWords?.(frame.words);
      continue;
    }
    const samples = converter.push(frame.samples);
    listener.onSamples(samples.length);
    const bytes = encoder.encode(samples);
    if (bytes.length > 0) yield bytes;
  }
  const rest = converter.finish();
  listener.onSamples(rest.length);
  for (const bytes of [encoder.encode(rest), encoder.finish()]) if (bytes.length > 0) yield bytes;
}
