/** Opus (RFC 6716, by libopus) in a container, exact in length by pre-skip and the end of the speech. */

import { type Encoder, joinBytes, noBytes } from "./encoder.ts";
import { createEncoderCache, type EncoderCache } from "./encoder-cache.ts";
import { framesPerSecond, granuleRate, type OpusContainer } from "./opus-container.ts";

/** The part of libopus that we use. The package's own types misspell one of its names. */
interface Libopus {
  /** Bits per second. */
  bitrate: number;
  /** Delay of the decoder, in samples at the encoder's rate. */
  readonly lookahead: number;
  /** @param samples one frame. */
  encode(samples: Int16Array): Uint8Array;
  /** Resets the stream and keeps the settings. */
  reset(): void;
}

/**
 * Rates in Hz. The specification allows them for Ogg (part 2.1), and Opus accepts them without resampling.
 */
export const opusRates = [8000, 12_000, 16_000, 24_000] as const;
type OpusRate = (typeof opusRates)[number];

/** At most a second of speech to a page of Ogg; a packet of speech needs one or two of a page's 255 segments. */
const packetsPerPage = 50;
const bitsPerSecond = 32_000;
const idleEncoders = 16;

const pools = new Map<OpusRate, EncoderCache<Libopus>>();

function libopusPool(rate: OpusRate): EncoderCache<Libopus> {
  const existing = pools.get(rate);
  if (existing) return existing;
  const made = createEncoderCache(async () => {
    const { Encoder } = await import("@evan/opus");
    const settings = { channels: 1, sample_rate: rate, application: "voip" } as const;
    const encoder = new Encoder(settings) as unknown as Libopus;
    encoder.bitrate = bitsPerSecond;
    return encoder;
  }, idleEncoders);
  pools.set(rate, made);
  return made;
}

/**
 * @param rate Hz, one of `opusRates`. @param container of this stream alone.
 * @throws RangeError for another rate.
 */
export async function createOpusEncoder(rate: number, container: OpusContainer): Promise<Encoder> {
  const opusRate = opusRates.find((offered) => offered === rate);
  if (opusRate === undefined) throw new RangeError(`Opus takes no ${rate} Hz`);
  return new OpusEncoder(await libopusPool(opusRate).take(), opusRate, container);
}

class OpusEncoder implements Encoder {
  readonly #libopus: Libopus;
  readonly #rate: OpusRate;
  readonly #container: OpusContainer;
  readonly #frame: Int16Array;
  /** Number of samples in `#frame`, which is not complete yet. */
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

  /** The headers are returned together with the first packets. */
  encode(samples: Int16Array): Uint8Array {
    this.#samples += samples.length;
    const packets = this.#encodeFrames(samples);
    if (packets.length === 0) return noBytes;
    const pieces = this.#start();
    for (let at = 0; at < packets.length; at += packetsPerPage) {
      const some = packets.slice(at, at + packetsPerPage);
      this.#packets += some.length;
      pieces.push(this.#container.frame(some, this.#packets));
    }
    return joinBytes(pieces);
  }

  /** Silence pushes out what libopus holds back; the container then says where the speech ends. */
  finish(): Uint8Array {
    const samples = this.#samples;
    const wanted = Math.ceil((samples + this.#libopus.lookahead) / this.#frame.length);
    const silence = wanted * this.#frame.length - samples;
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
      const taken = samples.subarray(at, at + this.#frame.length - this.#waiting);
      this.#frame.set(taken, this.#waiting);
      this.#waiting += taken.length;
      at += taken.length;
      if (this.#waiting < this.#frame.length) break;
      packets.push(this.#encodeFrame());
      this.#waiting = 0;
    }
    return packets;
  }

  #encodeFrame(): Uint8Array {
    this.#usable = false; // libopus is in an unknown state after a call that throws.
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
