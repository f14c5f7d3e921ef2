/** Encodes MP3 (MPEG-1, 2 and 2.5 layer III) with LAME at a constant bit rate. */

import { type Encoder, joinBytes } from "./encoder.ts";
import { createEncoderCache, type EncoderCache } from "./encoder-cache.ts";

/** The sampling rates of MP3 in Hz. */
const mp3Rates = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;
type Mp3Rate = (typeof mp3Rates)[number];
const highestRate: Mp3Rate = 48_000;

/** Returns the MP3 rate for speech at `rate` Hz: the lowest rate that is not lower, or the highest rate. */
export function mp3RateFor(rate: number): number {
  return mp3Rates.find((offered) => offered >= rate) ?? highestRate;
}

/** The number of LAME instances that are kept for further streams. Each instance uses about a megabyte. */
const idleInstances = 32;
/** The number of samples in one call of LAME. Its buffers grow with the longest call and never shrink. */
const sliceSamples = 9216;
/** The number of samples of silence that LAME adds at the start, in addition to the decoder's delay. */
const encoderDelaySamples = 576;

/**
 * The methods of LAME that this module calls. The returned bytes are in LAME's own memory, and the next call
 * overwrites them.
 */
interface Lame {
  configure(settings: {
    sampleRate: number;
    channels: 1;
    bitrate: Kilobits;
    outputSampleRate: Mp3Rate;
  }): void;
  encode(channels: readonly Float32Array[]): Uint8Array;
  finalize(): Uint8Array;
}

type Kilobits = 32 | 64 | 96;

function kilobitsFor(rate: number): Kilobits {
  if (rate < 16_000) return 32;
  return rate < 32_000 ? 64 : 96;
}

let pool: EncoderCache<Lame> | undefined;

function lamePool(): EncoderCache<Lame> {
  pool ??= createEncoderCache(async () => {
    const { createMp3Encoder } = await import("wasm-media-encoders");
    return createMp3Encoder();
  }, idleInstances);
  return pool;
}

/**
 * Creates an MP3 encoder.
 * @param rate a rate in Hz that `mp3RateFor` returns.
 * @throws RangeError for another rate, which LAME would change silently.
 */
export async function createMp3Encoder(rate: number): Promise<Encoder> {
  const outputRate = mp3Rates.find((offered) => offered === rate);
  if (outputRate === undefined)
    throw new RangeError(`MP3 does not support ${rate} Hz; use a rate of mp3RateFor`);
  const lame = await lamePool().take();
  lame.configure({
    sampleRate: rate,
    channels: 1,
    bitrate: kilobitsFor(rate),
    outputSampleRate: outputRate,
  });
  return pooledEncoder(lame);
}

function pooledEncoder(lame: Lame): Encoder {
  let usable = true; // The state of an instance is unknown after a call that throws.
  const call = (work: () => Uint8Array) => {
    usable = false;
    const bytes = work().slice();
    usable = true;
    return bytes;
  };
  return {
    encode: (samples) =>
      joinBytes(slices(samples).map((slice) => call(() => lame.encode([toFloats(slice)])))),
    finish: () => call(() => lame.finalize()),
    close: () => {
      if (usable) lamePool().give(lame);
    },
  };
}

function slices(samples: Int16Array): Int16Array[] {
  return Array.from({ length: Math.ceil(samples.length / sliceSamples) }, (_, i) =>
    samples.subarray(i * sliceSamples, (i + 1) * sliceSamples),
  );
}

function toFloats(samples: Int16Array): Float32Array {
  const floats = new Float32Array(samples.length);
  for (let i = 0; i < samples.length; i++) floats[i] = (samples[i] as number) / 32_768;
  return floats;
}

const tagBytes = 4 + 4 + 4 + 4 + 36;

/**
 * Returns the header frame of a complete MP3 file: the "Info" tag with LAME's extension. The frame states the
 * padding, so that decoders play exactly the synthesized samples.
 * @param audio all bytes of the encoder.
 * @param samples the number of encoded samples, at `rate` Hz.
 */
export function mp3FileHeader(rate: number, audio: Uint8Array, samples: number): Uint8Array {
  const isMpeg1 = rate >= 32_000;
  const frameSamples = isMpeg1 ? 1152 : 576;
  const frameBytes = Math.floor(((frameSamples / 8) * kilobitsFor(rate) * 1000) / rate);
  const frames = countFrames(audio, frameBytes);
  const padding = frames * frameSamples - encoderDelaySamples - samples;
  const frame = new Uint8Array(frameBytes);
  frame.set(audio.subarray(0, 4)); // The header has the same version, bit rate and mode as the audio.
  frame[2] = (frame[2] as number) & ~paddingBit;
  const sideInformationBytes = isMpeg1 ? 17 : 9;
  writeInfoTag(frame.subarray(4 + sideInformationBytes, 4 + sideInformationBytes + tagBytes), {
    frames,
    bytes: frameBytes + audio.length,
    padding,
  });
  return frame;
}

const paddingBit = 0b10;

/** Returns the number of frames. All frames have the same length, apart from one byte of padding. */
function countFrames(audio: Uint8Array, frameBytes: number): number {
  let count = 0;
  for (let at = 0; at + 4 <= audio.length; count++) {
    at += frameBytes + ((audio[at + 2] as number) & paddingBit ? 1 : 0);
  }
  return count;
}

function writeInfoTag(tag: Uint8Array, values: { frames: number; bytes: number; padding: number }): void {
  const view = new DataView(tag.buffer, tag.byteOffset, tag.byteLength);
  const text = (offset: number, value: string) => tag.set(new TextEncoder().encode(value), offset);
  text(0, "Info");
  view.setUint32(4, 0b11); // The flags state that the next two numbers are present.
  view.setUint32(8, values.frames);
  view.setUint32(12, values.bytes);
  text(16, "LAME3.100");
  view.setUint8(25, 0x01); // The method is a constant bit rate.
  const delays = (encoderDelaySamples << 12) | values.padding; // Each value has 12 bits.
  view.setUint8(37, delays >> 16);
  view.setUint16(38, delays & 0xffff);
}
