/**
 * Ogg Opus (RFC 6716 with libopus, in Ogg according to RFC 7845). Pre-skip and final granule make its length
 * exact.
 */

import { type Encoder, joinBytes, noBytes } from "./encoder.ts";
import { createEncoderCache, type EncoderCache } from "./encoder-cache.ts";
import { createOggStream, type OggStream } from "./ogg-page.ts";

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

/** Granules count samples at this rate, whatever the rate of the input (RFC 7845, section 4). */
const granuleRate = 48_000;
const framesPerSecond = 50;
const packetGranules = granuleRate / framesPerSecond;
/**
 * A page has at most one second of speech. A packet of speech needs one or two of the 255 segments of a
 * page.
 */
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
 * @param rate in Hz, one of `opusRates`.
 * @param serial of the Ogg stream: 32 bits, preferably random.
 * @throws RangeError for another rate.
 */
export async function createOpusEncoder(rate: number, serial: number): Promise<Encoder> {
  const opusRate = opusRates.find((offered) => offered === rate);
  if (opusRate === undefined) throw new RangeError(`Opus does not support ${rate} Hz`);
  return new OggOpusEncoder(await libopusPool(opusRate).take(), opusRate, serial);
}

class OggOpusEncoder implements Encoder {
  readonly #libopus: Libopus;
  readonly #rate: OpusRate;
  readonly #ogg: OggStream;
  readonly #frame: Int16Array;
  /** Number of samples in `#frame`, which is not complete yet. */
  #waiting = 0;
  #samples = 0;
  #packets = 0;
  #started = false;
  #usable = true;

  constructor(libopus: Libopus, rate: OpusRate, serial: number) {
    this.#libopus = libopus;
    this.#rate = rate;
    this.#ogg = createOggStream(serial);
    this.#frame = new Int16Array(rate / framesPerSecond);
  }

  /** The headers are returned together with the first packets. */
  encode(samples: Int16Array): Uint8Array {
    this.#samples += samples.length;
    const packets = this.#encodeFrames(samples);
    if (packets.length === 0) return noBytes;
    const pages = this.#start();
    for (let at = 0; at < packets.length; at += packetsPerPage) {
      const some = packets.slice(at, at + packetsPerPage);
      this.#packets += some.length;
      pages.push(this.#ogg.page(some, this.#packets * packetGranules));
    }
    return joinBytes(pages);
  }

  /**
   * Silence pushes out the samples that libopus delays. The last granule then marks the end of the speech.
   */
  finish(): Uint8Array {
    const samples = this.#samples;
    const wanted = Math.ceil((samples + this.#libopus.lookahead) / this.#frame.length);
    const silence = wanted * this.#frame.length - samples;
    const packets = this.#encodeFrames(new Int16Array(silence));
    const granule = Math.round((samples * granuleRate) / this.#rate) + this.#preSkip();
    return joinBytes([...this.#start(), this.#ogg.page(packets, granule, { last: true })]);
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
    return [
      this.#ogg.page([identification(this.#rate, this.#preSkip())], 0, { first: true }),
      this.#ogg.page([comments()], 0),
    ];
  }
}

/** RFC 7845, section 5.1. */
function identification(rate: number, preSkip: number): Uint8Array {
  const packet = new Uint8Array(19);
  const view = new DataView(packet.buffer);
  packet.set(new TextEncoder().encode("OpusHead"));
  view.setUint8(8, 1); // version
  view.setUint8(9, 1); // channels
  view.setUint16(10, preSkip, true);
  view.setUint32(12, rate, true);
  return packet; // no gain, and the family of plain mono
}

/** RFC 7845, section 5.2: the name of the encoder, and no comments. */
function comments(): Uint8Array {
  const vendor = new TextEncoder().encode("svc-tts, libopus");
  const packet = new Uint8Array(8 + 4 + vendor.length + 4);
  packet.set(new TextEncoder().encode("OpusTags"));
  new DataView(packet.buffer).setUint32(8, vendor.length, true);
  packet.set(vendor, 12);
  return packet;
}
