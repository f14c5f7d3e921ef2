import { type Encoder, noBytes } from "./encoder.ts";

const bias = 0x84;
const clip = 32_635;

/** G.711 mu-law, one byte a sample. */
export function createMulawEncoder(): Encoder {
  return { encode: (samples) => Uint8Array.from(samples, mulawByte), finish: () => noBytes };
}

/** ITU-T G.711: sign, three bits of exponent, four of mantissa, all inverted. */
function mulawByte(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample), clip) + bias;
  const exponent = 24 - Math.clz32(magnitude);
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~(sign | (exponent << 4) | mantissa) & 0xff;
}
