import { type Encoder, noBytes } from "./encoder.ts";

const bias = 0x84;
const clip = 32_635;

/** Creates an encoder for G.711 mu-law, with one byte for each sample. */
export function createMulawEncoder(): Encoder {
  return { encode: (samples) => Uint8Array.from(samples, mulawByte), finish: () => noBytes };
}

/**
 * Encodes a sample by ITU-T G.711: a sign, three bits of exponent and four bits of mantissa, all inverted.
 */
function mulawByte(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample), clip) + bias;
  const exponent = 24 - Math.clz32(magnitude);
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~(sign | (exponent << 4) | mantissa) & 0xff;
}
