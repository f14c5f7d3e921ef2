import { randomInt } from "node:crypto";
import type { Encoder } from "../../audio/encoder.ts";
import { createMp3Encoder, mp3FileHeader, mp3RateFor } from "../../audio/mp3.ts";
import { createMulawEncoder } from "../../audio/mulaw.ts";
import { createOpusEncoder } from "../../audio/opus.ts";
import { createPcmEncoder } from "../../audio/pcm.ts";
import { createWavStreamEncoder, wavHeader } from "../../audio/wav.ts";
import type { AnswerForm, AudioFormat } from "./variants.ts";

type CreateEncoder = (rate: number) => Encoder | Promise<Encoder>;

/** How one audio format is written. */
export interface Format {
  /** A streaming encoder for samples at `rate` Hz. */
  readonly createEncoder: CreateEncoder;
  /** What goes before the audio in an answer that is known as a whole, where that says more than the stream does. */
  readonly file?: {
    readonly createEncoder: CreateEncoder;
    readonly header: (rate: number, audio: Uint8Array, samples: number) => Uint8Array;
  };
  /** The rate that the format is written at when `rate` Hz are asked for; the same, where this is absent. */
  readonly rateFor?: (rate: number) => number;
}

export const formats: Readonly<Record<AudioFormat, Format>> = {
  wav: {
    createEncoder: createWavStreamEncoder,
    file: { createEncoder: createPcmEncoder, header: (rate, audio) => wavHeader(rate, audio.length) },
  },
  ogg: { createEncoder: (rate) => createOpusEncoder(rate, randomInt(2 ** 32)) },
  mp3: {
    createEncoder: createMp3Encoder,
    file: { createEncoder: createMp3Encoder, header: mp3FileHeader },
    rateFor: mp3RateFor,
  },
  mulaw: { createEncoder: createMulawEncoder },
  pcm: { createEncoder: createPcmEncoder },
};

/** What an answer's audio is written with: a JSON answer's is a file. */
export function encoderOf(format: AudioFormat, form: AnswerForm): CreateEncoder {
  const { createEncoder, file } = formats[format];
  return form === "json" && file ? file.createEncoder : createEncoder;
}
