/** Writes the pages of one logical Ogg stream (RFC 3533). */
import { joinBytes } from "./encoder.ts";

/** The highest number of lacing values of a page. An Opus packet of this encoder needs one or two values. */
const maxSegments = 255;

export interface PageFlags {
  readonly first?: boolean;
  readonly last?: boolean;
}

export interface OggStream {
  /**
   * Writes one page of complete packets.
   * @param granule the position at the end of the page, for Opus in samples at 48 kHz (RFC 7845, section 4).
   * @throws RangeError if the packets do not fit into one page.
   */
  page(packets: readonly Uint8Array[], granule: number, flags?: PageFlags): Uint8Array;
}

/**
 * Creates an Ogg stream.
 * @param serial the number of the stream: 32 bits, preferably random. The number separates streams in one
 * file.
 */
export function createOggStream(serial: number): OggStream {
  let sequence = 0;
  return {
    page(packets, granule, { first = false, last = false } = {}) {
      const segments = packets.flatMap(lacing);
      if (segments.length > maxSegments)
        throw new RangeError(
          `the packets need ${segments.length} segments; a page has at most ${maxSegments}`,
        );
      const header = new Uint8Array(27 + segments.length);
      const view = new DataView(header.buffer);
      header.set(new TextEncoder().encode("OggS"));
      view.setUint8(5, (first ? 2 : 0) | (last ? 4 : 0));
      view.setBigInt64(6, BigInt(granule), true);
      view.setUint32(14, serial, true);
      view.setUint32(18, sequence++, true);
      view.setUint8(26, segments.length);
      header.set(segments, 27);
      const page = joinBytes([header, ...packets]);
      new DataView(page.buffer).setUint32(22, checksum(page), true);
      return page;
    },
  };
}

/**
 * Returns the lacing values of a packet: 255 for each full 255 bytes, then the remaining length, which may be
 * 0.
 */
function lacing({ length }: Uint8Array): number[] {
  return [...new Array<number>(Math.floor(length / 255)).fill(255), length % 255];
}

const polynomial = 0x04c1_1db7;
const checksumTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit++) rest = rest & 0x8000_0000 ? (rest << 1) ^ polynomial : rest << 1;
  return rest >>> 0;
});

/**
 * Returns the CRC-32 of the Ogg format. This variant is not reflected and starts with 0, and the page's own
 * checksum field counts as zero.
 */
function checksum(page: Uint8Array): number {
  let sum = 0;
  for (const byte of page) sum = ((sum << 8) ^ (checksumTable[(sum >>> 24) ^ byte] as number)) >>> 0;
  return sum;
}
