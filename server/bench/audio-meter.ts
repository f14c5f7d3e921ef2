import { createMp3Meter, createOpusMeter } from "./frame-meters.ts";
import type { AudioMeter, Measure } from "./measure.ts";

/** Longest header of a WAV file that is looked through for its audio. */
const maxHeaderBytes = 64 * 1024;
const bytesPerSample: Readonly<Record<string, number>> = {
  "audio/pcm": 2,
  "audio/l16": 2,
  "audio/x-mulaw": 1,
  "audio/basic": 1,
  "audio/pcmu": 1,
};
const wavTypes = ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"];

/** @param mediaType without parameters. @param rate Hz of raw audio, if it is known. */
export function createAudioMeter(mediaType: string, rate: number | undefined): AudioMeter {
  if (wavTypes.includes(mediaType)) return new WavMeter();
  if (mediaType === "audio/mpeg") return createMp3Meter();
  if (mediaType === "audio/ogg") return createOpusMeter();
  const width = bytesPerSample[mediaType];
  const bytesPerMs = width === undefined || rate === undefined ? undefined : (width * rate) / 1000;
  return { push: ({ length }) => ({ bytes: length, ms: bytesPerMs && length / bytesPerMs }) };
}

/** Audio begins after the head of the `data` chunk, wherever it is: peers write other headers than ours. */
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
    if (header.length > maxHeaderBytes) throw new Error("a WAV header without audio");
    return undefined;
  }
}
