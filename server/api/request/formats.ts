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
  /** Creates a streaming encoder for samples at `rate` Hz. */
  readonly createEncoder: CreateEncoder;
  /**
   * The encoder and the header of a complete file. The value is absent if a file has the same bytes as a
   * stream.
   */
  readonly file?: {
    readonly createEncoder: CreateEncoder;
    readonly header: (rate: number, audio: Uint8Array, samples: number) => Uint8Array;
  };
  /**
   * Returns the encoder's rate for a requested `rate` in Hz. The function is absent if the encoder supports
   * every rate.
   */
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

/** Returns the encoder of a response. A JSON response contains a complete file. */
export function encoderOf(format: AudioFormat, form: AnswerForm): CreateEncoder {
  const { createEncoder, file } = formats[format];
  return form === "json" && file ? file.createEncoder : createEncoder;
}
