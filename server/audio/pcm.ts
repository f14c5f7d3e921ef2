import { type Encoder, noBytes } from "./encoder.ts";

/** Creates an encoder for raw PCM: mono, signed 16-bit, little-endian samples. */
export function createPcmEncoder(): Encoder {
  return { encode: pcmBytes, finish: () => noBytes };
}

/**
 * Returns the bytes of samples as a view, without a copy. All supported machines store samples in
 * little-endian order.
 */
export function pcmBytes(samples: Int16Array): Uint8Array {
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
}
