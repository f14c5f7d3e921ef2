import type { FrameCodes } from "./code-generator.ts";
import type { CodecTables } from "./model-files.ts";
import { Vocoder } from "./vocoder.ts";

interface DecodedVoice {
  /** The index of the speaker in the codec's list of speakers. */
  readonly speaker: number;
  /** The factor for the speaker's resonances. */
  readonly formants: number;
}

/** Decodes the codes of one utterance into audio. */
export class CodecDecoder {
  readonly #tables: CodecTables;
  readonly #mean: readonly number[];
  readonly #vocoder: Vocoder;

  constructor(tables: CodecTables, { speaker, formants }: DecodedVoice) {
    const { rate, coefficients, warp } = tables;
    this.#tables = tables;
    this.#mean = tables.means[speaker] ?? [];
    this.#vocoder = new Vocoder({ rate, coefficients, warp, formants });
  }

  /**
   * Adds a frame.
   * @param samples the duration of the frame.
   * @returns the samples that are final after this frame, from -1 to 1.
   */
  push(codes: FrameCodes, pitchHz: number, samples: number): Float32Array {
    const { books, coefficients, noiseDb } = this.#tables;
    const cepstrum = Float32Array.from(this.#mean);
    let at = 0;
    for (const [i, book] of books.entries()) {
      const width = widthOf(book, this.#tables.heads.codes[i]);
      const from = (codes[i] ?? 0) * width;
      for (let k = 0; k < width; k++, at++) cepstrum[at] = (cepstrum[at] ?? 0) + (book[from + k] ?? 0);
    }
    if (at !== coefficients)
      throw new Error(
        `codec.json: the codebooks have ${at} coefficients and the cepstrum has ${coefficients}`,
      );
    return this.#vocoder.push({
      cepstrum,
      aperiodicityDb: noiseDb[codes[books.length] ?? 0] ?? 0,
      pitchHz,
      samples,
    });
  }

  finish(): Float32Array {
    return this.#vocoder.finish();
  }
}

function widthOf(book: readonly number[], codes = 1): number {
  return book.length / codes;
}
