import { type Encoder, noBytes } from "./encoder.ts";

/** Raw mono signed 16-bit little-endian samples. */
export function createPcmEncoder(): Encoder {
  return { encode: pcmBytes, finish: () => noBytes };
}

/** Returns a view, not a copy: all supported machines store samples in little-endian order. */
export function pcmBytes(samples: Int16Array): Uint8Array {
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
}
