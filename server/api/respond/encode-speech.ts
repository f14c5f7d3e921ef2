import { type Encoder, joinBytes } from "../../audio/encoder.ts";
import { createRateConverter } from "../../audio/resample.ts";
import type { WordTimestamp } from "../../contract/speech.ts";
import type { SynthesisStream } from "../upstream/model-client.ts";

/** Reports about the encoded audio. */
export interface Listener {
  /**
   * The encoder converted this many samples, at the response's rate, to this many bytes (0 while it buffers)
   * in this many milliseconds.
   */
  onEncoded(samples: number, bytes: number, workMs: number): void;
  /** Word timestamps are seconds, which do not change with the sampling rate. */
  onWords?(words: readonly WordTimestamp[]): void;
}

/** Speech that has started, and its encoder. */
export interface Speaking {
  readonly speech: SynthesisStream;
  /** An encoder of this response, at its rate. */
  readonly encoder: Encoder;
}

/**
 * Speech as the bytes of its response: resampled, encoded, and pulled piece by piece.
 * @param rate Hz of the response.
 * @throws Failure if the model fails during the stream.
 */
export async function* encodeSpeech(
  speaking: Speaking,
  rate: number,
  listener: Listener,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* encodeAll(speaking, rate, listener);
  } finally {
    speaking.encoder.close?.();
  }
}

async function* encodeAll(
  { speech, encoder }: Speaking,
  rate: number,
  listener: Listener,
): AsyncGenerator<Uint8Array, void, void> {
  const converter = createRateConverter(speech.rate, rate);
  for await (const frame of speech.frames) {
    if (frame.kind === "words") {
      listener.onWords?.(frame.words);
      continue;
    }
    const startedAt = performance.now();
    const samples = converter.push(frame.samples);
    const bytes = encoder.encode(samples);
    listener.onEncoded(samples.length, bytes.length, performance.now() - startedAt);
    if (bytes.length > 0) yield bytes;
  }
  const startedAt = performance.now();
  const rest = converter.finish();
  const last = joinBytes([encoder.encode(rest), encoder.finish()].filter(({ length }) => length > 0));
  listener.onEncoded(rest.length, last.length, performance.now() - startedAt);
  if (last.length > 0) yield last;
}
