/** MP3 (MPEG-1, 2 and 2.5 layer III) at a constant bit rate, by LAME. */

import { type Encoder, joinBytes } from "./encoder.ts";
import { createEncoderCache, type EncoderCache } from "./encoder-cache.ts";

/** The rates that MP3 has, in Hz. */
const mp3Rates = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;
type Mp3Rate = (typeof mp3Rates)[number];
const highestRate: Mp3Rate = 48_000;

/**
 * The rate of the MP3 for speech at `rate` Hz: the lowest MP3 rate that loses nothing, or else the highest.
 */
export function mp3RateFor(rate: number): number {
  return mp3Rates.find((offered) => offered >= rate) ?? highestRate;
}

/** Number of LAME instances kept for the next streams. Each one holds about a megabyte. */
const idleInstances = 32;
/** Number of samples given to LAME at once. Its buffers grow with the longest piece and never shrink. */
const sliceSamples = 9216;
/** Samples of silence that LAME adds before the first one, in addition to the decoder's own delay. */
const encoderDelaySamples = 576;

/** The part of a LAME instance that we use. It returns bytes in its own memory, which the next call overwrites. */
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
 * @param rate in Hz, one of the results of `mp3RateFor`.
 * @throws RangeError for another rate, which LAME would silently change.
 */
export async function createMp3Encoder(rate: number): Promise<Encoder> {
  const outputRate = mp3Rates.find((offered) => offered === rate);
  if (outputRate === undefined) throw new RangeError(`MP3 has no rate of ${rate} Hz`);
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
  let usable = true; // An instance is in an unknown state after a call that throws.
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
 * The header frame of a complete MP3 file: the "Info" tag with LAME's extension. It states the padding, so
 * that decoders play exactly the synthesized samples.
 * @param audio all bytes of the encoder.
 * @param samples number of encoded samples, at `rate` Hz.
 */
export function mp3FileHeader(rate: number, audio: Uint8Array, samples: number): Uint8Array {
  const isMpeg1 = rate >= 32_000;
  const frameSamples = isMpeg1 ? 1152 : 576;
  const frameBytes = Math.floor(((frameSamples / 8) * kilobitsFor(rate) * 1000) / rate);
  const frames = countFrames(audio, frameBytes);
  const padding = frames * frameSamples - encoderDelaySamples - samples;
  const frame = new Uint8Array(frameBytes);
  frame.set(audio.subarray(0, 4)); // the same version, bit rate and mode
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

/** All frames have the same length, except for one byte of padding. */
function countFrames(audio: Uint8Array, frameBytes: number): number {
  let count = 0;
  for (let at = 0; at + 4 <= audio.length; count++) {
    at += frameBytes + ((audio[at + 2] as number) & paddingBit ? 1 : 0);
  }
  return count;
}

function writeInfoTag(tag: Uint8Array, facts: { frames: number; bytes: number; padding: number }): void {
  const view = new DataView(tag.buffer, tag.byteOffset, tag.byteLength);
  const text = (offset: number, value: string) => tag.set(new TextEncoder().encode(value), offset);
  text(0, "Info");
  view.setUint32(4, 0b11); // The next two numbers are present.
  view.setUint32(8, facts.frames);
  view.setUint32(12, facts.bytes);
  text(16, "LAME3.100");
  view.setUint8(25, 0x01); // Constant bit rate.
  const delays = (encoderDelaySamples << 12) | facts.padding; // 12 bits each
  view.setUint8(37, delays >> 16);
  view.setUint16(38, delays & 0xffff);
}
