import { type Encoder, noBytes } from "./encoder.ts";

/**
 * One encoder for audio that is synthesized in several parts and played as one stream. The stream has one
 * header and one end.
 */
export class ContinuedEncoder {
  readonly #create: () => Encoder | Promise<Encoder>;
  #encoder: Promise<Encoder> | undefined;

  constructor(create: () => Encoder | Promise<Encoder>) {
    this.#create = create;
  }

  /** Returns the encoder of one part. `finish` of a part does not end the stream. */
  async part(): Promise<Encoder> {
    this.#encoder ??= Promise.resolve(this.#create());
    const encoder = await this.#encoder;
    return { encode: (samples) => encoder.encode(samples), finish: () => noBytes };
  }

  /**
   * Ends the stream.
   * @returns the remaining bytes. The result is empty if `part` was never called.
   */
  async finish(): Promise<Uint8Array> {
    return (await this.#encoder)?.finish() ?? noBytes;
  }

  /** Frees the encoder. The caller must call this method once, after the last part. */
  async close(): Promise<void> {
    // An encoder that could not be created has no resources. `part` has already thrown its error.
    const encoder = await this.#encoder?.catch(() => undefined);
    encoder?.close?.();
  }
}
