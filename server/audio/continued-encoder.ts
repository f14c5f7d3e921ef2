import { type Encoder, noBytes } from "./encoder.ts";

/**
 * One encoder for audio that is made in several parts and played as one stream, with one header and one end.
 */
export class ContinuedEncoder {
  readonly #create: () => Encoder | Promise<Encoder>;
  #made: Promise<Encoder> | undefined;

  constructor(create: () => Encoder | Promise<Encoder>) {
    this.#create = create;
  }

  /** The encoder for one part. The end of a part neither ends the stream nor frees the encoder. */
  async part(): Promise<Encoder> {
    this.#made ??= Promise.resolve(this.#create());
    const encoder = await this.#made;
    return { encode: (samples) => encoder.encode(samples), finish: () => noBytes };
  }

  /** @returns the bytes that the encoder still held, or none if there was no part. */
  async finish(): Promise<Uint8Array> {
    return (await this.#made)?.finish() ?? noBytes;
  }

  /** Call this once, after the last part. */
  async close(): Promise<void> {
    // An encoder that could not be created has nothing to free, and its error was already thrown by `part`.
    const encoder = await this.#made?.catch(() => undefined);
    encoder?.close?.();
  }
}
