/**
 * Encodes Opus (RFC 6716, by libopus) in a container. The pre-skip and the position of the end make the
 * length exact.
 */

import { type Encoder, joinBytes, noBytes } from "./encoder.ts";
import { createEncoderCache, type EncoderCache } from "./encoder-cache.ts";
import { framesPerSecond, granuleRate, type OpusContainer } from "./opus-container.ts";

/**
 * The methods of libopus that this module calls. The interface replaces the package's own types, which
 * contain a misspelt name.
 */
interface Libopus {
  /** The bit rate in bits per second. */
  bitrate: number;
  /** The delay of the decoder, in samples at the encoder's rate. */
  readonly lookahead: number;
  /** Encodes one frame. */
  encode(samples: Int16Array): Uint8Array;
  /** Resets the state of the stream. The settings are kept. */
  reset(): void;
}

/**
 * The supported rates in Hz. The specification allows these rates for Ogg (part 2.1), and Opus accepts these
 * rates without resampling.
 */
export const opusRates = [8000, 12_000, 16_000, 24_000] as const;
type OpusRate = (typeof opusRates)[number];

/**
 * The number of packets in a page of Ogg: at most a second of speech. A packet of speech needs one or two of
 * the 255 segments of a page.
 */
const packetsPerPage = 50;
const bitsPerSecond = 32_000;
const idleEncoders = 16;

const pools = new Map<OpusRate, EncoderCache<Libopus>>();

function libopusPool(rate: OpusRate): EncoderCache<Libopus> {
  const existing = pools.get(rate);
  if (existing) return existing;
  const created = createEncoderCache(async () => {
    const { Encoder } = await import("@evan/opus");
    const settings = { channels: 1, sample_rate: rate, application: "voip" } as const;
    const encoder = new Encoder(settings) as unknown as Libopus;
    encoder.bitrate = bitsPerSecond;
    return encoder;
  }, idleEncoders);
  pools.set(rate, created);
  return created;
}

/**
 * Creates an Opus encoder.
 * @param rate the rate in Hz, one of `opusRates`.
 * @param container a container that no other stream uses.
 * @throws RangeError for another rate.
 */
export async function createOpusEncoder(rate: number, container: OpusContainer): Promise<Encoder> {
  const opusRate = opusRates.find((offered) => offered === rate);
  if (opusRate === undefined)
    throw new RangeError(`Opus does not support ${rate} Hz; use ${opusRates.join(", ")} Hz`);
  return new OpusEncoder(await libopusPool(opusRate).take(), opusRate, container);
}

class OpusEncoder implements Encoder {
  readonly #libopus: Libopus;
  readonly #rate: OpusRate;
  readonly #container: OpusContainer;
  readonly #frame: Int16Array;
  /** The number of samples in `#frame`, which is incomplete. */
  #waiting = 0;
  #samples = 0;
  #packets = 0;
  #started = false;
  #usable = true;

  constructor(libopus: Libopus, rate: OpusRate, container: OpusContainer) {
    this.#libopus = libopus;
    this.#rate = rate;
    this.#container = container;
    this.#frame = new Int16Array(rate / framesPerSecond);
  }

  /** Encodes samples. The first packets are returned together with the headers. */
  encode(samples: Int16Array): Uint8Array {
    this.#samples += samples.length;
    const packets = this.#encodeFrames(samples);
    if (packets.length === 0) return noBytes;
    const pieces = this.#start();
    for (let at = 0; at < packets.length; at += packetsPerPage) {
      const batch = packets.slice(at, at + packetsPerPage);
      this.#packets += batch.length;
      pieces.push(this.#container.frame(batch, this.#packets));
    }
    return joinBytes(pieces);
  }

  /**
   * Encodes silence, so that libopus returns the samples in its buffer. The container states where the speech
   * ends.
   */
  finish(): Uint8Array {
    const samples = this.#samples;
    const frames = Math.ceil((samples + this.#libopus.lookahead) / this.#frame.length);
    const silence = frames * this.#frame.length - samples;
    const packets = this.#encodeFrames(new Int16Array(silence));
    this.#packets += packets.length;
    const granule = Math.round((samples * granuleRate) / this.#rate) + this.#preSkip();
    return joinBytes([...this.#start(), this.#container.end(packets, this.#packets, granule)]);
  }

  close(): void {
    if (!this.#usable) return;
    this.#libopus.reset();
    libopusPool(this.#rate).give(this.#libopus);
  }

  #encodeFrames(samples: Int16Array): Uint8Array[] {
    const packets: Uint8Array[] = [];
    for (let at = 0; at < samples.length; ) {
      const part = samples.subarray(at, at + this.#frame.length - this.#waiting);
      this.#frame.set(part, this.#waiting);
      this.#waiting += part.length;
      at += part.length;
      if (this.#waiting < this.#frame.length) break;
      packets.push(this.#encodeFrame());
      this.#waiting = 0;
    }
    return packets;
  }

  #encodeFrame(): Uint8Array {
    this.#usable = false; // The state of libopus is unknown after a call that throws.
    const packet = this.#libopus.encode(this.#frame).slice();
    this.#usable = true;
    return packet;
  }

  #preSkip(): number {
    return (this.#libopus.lookahead * granuleRate) / this.#rate;
  }

  #start(): Uint8Array[] {
    if (this.#started) return [];
    this.#started = true;
    return [this.#container.start(this.#rate, this.#preSkip())];
  }
}
