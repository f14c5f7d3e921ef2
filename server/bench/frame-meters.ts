/**
 * Measures formats whose frame headers contain the duration. The meters read only the headers, and decode no
 * audio.
 */
import type { AudioMeter, Measure } from "./measure.ts";

interface Frame {
  readonly length: number;
  /** The duration, which is 0 for a header. */
  readonly ms: number;
}

class FrameMeter implements AudioMeter {
  /** Reads the frame at the start of the bytes. The result is undefined until enough bytes have arrived. */
  readonly #read: (bytes: Buffer) => Frame | undefined;
  #rest: Buffer = Buffer.alloc(0);

  constructor(read: (bytes: Buffer) => Frame | undefined) {
    this.#read = read;
  }

  push(piece: Uint8Array): Measure {
    this.#rest = Buffer.concat([this.#rest, piece]);
    let [bytes, ms] = [0, 0];
    for (let frame = this.#read(this.#rest); frame; frame = this.#read(this.#rest)) {
      if (frame.length > this.#rest.length) break;
      if (frame.ms > 0) bytes += frame.length;
      ms += frame.ms;
      this.#rest = this.#rest.subarray(frame.length);
    }
    return { bytes, ms };
  }
}

/**
 * The bit rates of MPEG audio layer III (ISO 11172-3 and 13818-3) in kbit/s by index, for version 1, and for
 * versions 2 and 2.5.
 */
const bitrates = [
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
] as const;
const rates = [44_100, 48_000, 32_000] as const;
/** The versions by the two version bits. An undefined entry is reserved. */
const versions = [
  { table: 1, divisor: 4 },
  undefined,
  { table: 1, divisor: 2 },
  { table: 0, divisor: 1 },
] as const;

export function createMp3Meter(): AudioMeter {
  return new FrameMeter(readMp3Frame);
}

function readMp3Frame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 4) return undefined;
  const head = bytes.readUInt32BE(0);
  const version = versions[(head >>> 19) & 3];
  const kilobits = version && bitrates[version.table][(head >>> 12) & 15];
  const base = rates[(head >>> 10) & 3];
  const isFrame = head >>> 21 === 0x7ff && ((head >>> 17) & 3) === 1;
  // The byte belongs to a tag, so the meter skips the byte.
  if (!isFrame || !version || !kilobits || !base) return { length: 1, ms: 0 };
  const rate = base / version.divisor;
  const samples = version.table === 0 ? 1152 : 576;
  const length = Math.floor((samples / 8) * ((kilobits * 1000) / rate)) + ((head >>> 9) & 1);
  return { length, ms: (samples * 1000) / rate };
}

const pageHeadBytes = 27;
/**
 * The number of granules in a millisecond. Opus counts granules at 48 kHz, independently of its playback rate
 * (RFC 7845).
 */
const granulesPerMs = 48n;

export function createOpusMeter(): AudioMeter {
  let last = 0n;
  return new FrameMeter((bytes) => {
    if (bytes.length < pageHeadBytes) return undefined;
    if (bytes.toString("latin1", 0, 4) !== "OggS")
      throw new Error("the Ogg stream has bytes between two pages");
    const segments = bytes.readUInt8(26);
    if (bytes.length < pageHeadBytes + segments) return undefined;
    const sizes = bytes.subarray(pageHeadBytes, pageHeadBytes + segments);
    const length = pageHeadBytes + segments + sizes.reduce((sum, size) => sum + size, 0);
    if (length > bytes.length) return undefined;
    const granule = bytes.readBigInt64LE(6);
    const played = granule > last ? granule - last : 0n;
    last += played;
    return { length, ms: Number(played) / Number(granulesPerMs) };
  });
}
