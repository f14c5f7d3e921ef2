import { randomInt } from "node:crypto";
import type { Encoder } from "../../audio/encoder.ts";
import { createMp3Encoder, mp3FileHeader, mp3RateFor } from "../../audio/mp3.ts";
import { createMulawEncoder } from "../../audio/mulaw.ts";
import { createOggContainer } from "../../audio/ogg-opus.ts";
import { createOpusEncoder } from "../../audio/opus.ts";
import { createPcmEncoder } from "../../audio/pcm.ts";
import { createWavStreamEncoder, wavHeader } from "../../audio/wav.ts";
import { createWebmContainer } from "../../audio/webm-opus.ts";
import type { AnswerForm, AudioFormat } from "./variants.ts";

type CreateEncoder = (rate: number) => Encoder | Promise<Encoder>;

/** The encoding of one audio format. */
export interface Format {
  /** A streaming encoder for samples at `rate` Hz. */
  readonly createEncoder: CreateEncoder;
  /** The header of a response with a known length, if it differs from the stream's. */
  readonly file?: {
    readonly createEncoder: CreateEncoder;
    readonly header: (rate: number, audio: Uint8Array, samples: number) => Uint8Array;
  };
  /** The rate of the encoder for a requested `rate` in Hz. Absent if it is the same. */
  readonly rateFor?: (rate: number) => number;
}

export const formats: Readonly<Record<AudioFormat, Format>> = {
  wav: {
    createEncoder: createWavStreamEncoder,
    file: { createEncoder: createPcmEncoder, header: (rate, audio) => wavHeader(rate, audio.length) },
  },
  ogg: { createEncoder: (rate) => createOpusEncoder(rate, createOggContainer(randomInt(2 ** 32))) },
  webm: { createEncoder: (rate) => createOpusEncoder(rate, createWebmContainer()) },
  mp3: {
    createEncoder: createMp3Encoder,
    file: { createEncoder: createMp3Encoder, header: mp3FileHeader },
    rateFor: mp3RateFor,
  },
  mulaw: { createEncoder: createMulawEncoder },
  pcm: { createEncoder: createPcmEncoder },
};

/** The format of a response's audio. That of a JSON response is a file format. */
export function encoderOf(format: AudioFormat, form: AnswerForm): CreateEncoder {
  const { createEncoder, file } = formats[format];
  return form === "json" && file ? file.createEncoder : createEncoder;
}
