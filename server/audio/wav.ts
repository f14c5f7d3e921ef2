import { type Encoder, noBytes } from "./encoder.ts";
import { pcmBytes } from "./pcm.ts";

const wavHeaderBytes = 44;
/**
 * The length in the header of a stream of unknown length. FFmpeg, SoX, browsers and OpenAI's service write or
 * accept this length.
 */
const unknownSize = 0xffff_ffff;

/**
 * Returns the RIFF WAVE header of mono 16-bit PCM.
 * @param rate the sampling rate in Hz.
 * @param dataBytes the length of the samples, or undefined if the length is unknown.
 */
export function wavHeader(rate: number, dataBytes: number | undefined): Uint8Array {
  const header = new Uint8Array(wavHeaderBytes);
  const view = new DataView(header.buffer);
  const text = (offset: number, value: string) => header.set(new TextEncoder().encode(value), offset);
  text(0, "RIFF");
  view.setUint32(4, dataBytes === undefined ? unknownSize : dataBytes + wavHeaderBytes - 8, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true); // The format chunk has 16 bytes.
  view.setUint16(20, 1, true); // The format is linear PCM.
  view.setUint16(22, 1, true); // The audio has one channel.
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true); // This field contains the bytes per second.
  view.setUint16(32, 2, true); // One sample of all channels has two bytes.
  view.setUint16(34, 16, true); // One sample has 16 bits.
  text(36, "data");
  view.setUint32(40, dataBytes ?? unknownSize, true);
  return header;
}

/**
 * Creates an encoder for a WAV stream of unknown length (specification 4.5). The first samples are returned
 * together with the header.
 */
export function createWavStreamEncoder(rate: number): Encoder {
  let started = false;
  const withHeader = (bytes: Uint8Array): Uint8Array => {
    if (started) return bytes;
    started = true;
    const joined = new Uint8Array(wavHeaderBytes + bytes.length);
    joined.set(wavHeader(rate, undefined));
    joined.set(bytes, wavHeaderBytes);
    return joined;
  };
  return {
    encode: (samples) => (samples.length === 0 ? noBytes : withHeader(pcmBytes(samples))),
    finish: () => withHeader(noBytes),
  };
}
