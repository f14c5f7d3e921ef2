import { type Encoder, joinBytes } from "../../audio/encoder.ts";
import { createRateConverter } from "../../audio/resample.ts";
import type { WordTimestamp } from "../../contract/speech.ts";
import type { SynthesisStream } from "../upstream/model-client.ts";
import type { FirstPiece } from "./first-piece.ts";

/** Receives reports about the progress of the encoding. */
export interface Listener {
  /**
   * The encoding calls this function after each step.
   * @param samples the number of encoded samples at the rate of the response.
   * @param bytes the number of encoded bytes, which is 0 while the encoder buffers.
   * @param workMs the duration of the step.
   */
  onEncoded(samples: number, bytes: number, workMs: number): void;
  /** The encoding calls this function with word timestamps in seconds. */
  onWords?(words: readonly WordTimestamp[]): void;
}

/** A synthesis with its first audio, and the encoder of its response. */
export interface Speaking {
  readonly speech: SynthesisStream;
  /** The encoder of this response, at the rate of the response. */
  readonly encoder: Encoder;
}

/**
 * Resamples and encodes speech, and yields the bytes of the response piece by piece.
 * @param rate the sampling rate in Hz of the response.
 * @param firstPiece limits the duration of the first piece. Without this parameter, each piece has the
 * duration of a frame of the model.
 * @throws Failure if the model fails during the stream.
 */
export async function* encodeSpeech(
  speaking: Speaking,
  rate: number,
  listener: Listener,
  firstPiece?: FirstPiece,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* encodeAll(speaking, rate, listener, firstPiece);
  } finally {
    speaking.encoder.close?.();
  }
}

async function* encodeAll(
  { speech, encoder }: Speaking,
  rate: number,
  listener: Listener,
  firstPiece: FirstPiece | undefined,
): AsyncGenerator<Uint8Array, void, void> {
  const converter = createRateConverter(speech.rate, rate);
  for await (const frame of speech.frames) {
    if (frame.kind === "words") {
      listener.onWords?.(frame.words);
      continue;
    }
    let startedAt = performance.now();
    const converted = converter.push(frame.samples);
    for (const samples of firstPiece?.push(converted) ?? [converted]) {
      const bytes = encoder.encode(samples);
      listener.onEncoded(samples.length, bytes.length, performance.now() - startedAt);
      if (bytes.length > 0) yield bytes;
      startedAt = performance.now();
    }
  }
  const startedAt = performance.now();
  const converted = converter.finish();
  const rest = firstPiece?.finish(converted) ?? converted;
  const last = joinBytes([encoder.encode(rest), encoder.finish()].filter(({ length }) => length > 0));
  listener.onEncoded(rest.length, last.length, performance.now() - startedAt);
  if (last.length > 0) yield last;
}
