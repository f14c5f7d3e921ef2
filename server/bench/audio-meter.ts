import { createMp3Meter, createOpusMeter } from "./frame-meters.ts";
import type { AudioMeter, Measure } from "./measure.ts";

/** The meter reports an error if a WAV header is longer than this. */
const maxHeaderBytes = 64 * 1024;
const bytesPerSample: Readonly<Record<string, number>> = {
  "audio/pcm": 2,
  "audio/l16": 2,
  "audio/x-mulaw": 1,
  "audio/basic": 1,
  "audio/pcmu": 1,
};
const wavTypes = ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"];

/**
 * Creates a meter for a media type.
 * @param mediaType the media type without parameters.
 * @param rate the rate of raw audio in Hz, if it is known.
 */
export function createAudioMeter(mediaType: string, rate: number | undefined): AudioMeter {
  if (wavTypes.includes(mediaType)) return new WavMeter();
  if (mediaType === "audio/mpeg") return createMp3Meter();
  if (mediaType === "audio/ogg") return createOpusMeter();
  const width = bytesPerSample[mediaType];
  const bytesPerMs = width === undefined || rate === undefined ? undefined : (width * rate) / 1000;
  return { push: ({ length }) => ({ bytes: length, ms: bytesPerMs && length / bytesPerMs }) };
}

/**
 * Measures a WAV stream. The audio starts after the header of the `data` chunk. The chunk has no fixed
 * position, because some servers write additional chunks before it.
 */
class WavMeter implements AudioMeter {
  #header: Buffer = Buffer.alloc(0);
  #bytesPerMs: number | undefined;
  #inAudio = false;

  push(piece: Uint8Array): Measure {
    if (this.#inAudio) return this.#audio(piece.length);
    this.#header = Buffer.concat([this.#header, piece]);
    const start = this.#findAudio();
    if (start === undefined) return { bytes: 0, ms: 0 };
    this.#inAudio = true;
    return this.#audio(this.#header.length - start);
  }

  #audio(bytes: number): Measure {
    return { bytes, ms: this.#bytesPerMs && bytes / this.#bytesPerMs };
  }

  #findAudio(): number | undefined {
    const header = this.#header;
    for (let at = 12; at + 8 <= header.length; ) {
      const name = header.toString("latin1", at, at + 4);
      const size = header.readUInt32LE(at + 4);
      if (name === "data") return at + 8;
      if (name === "fmt " && at + 20 <= header.length) {
        this.#bytesPerMs = header.readUInt32LE(at + 16) / 1000;
      }
      at += 8 + size + (size % 2);
    }
    if (header.length > maxHeaderBytes)
      throw new Error(`the first ${maxHeaderBytes} bytes of the WAV response contain no audio`);
    return undefined;
  }
}
