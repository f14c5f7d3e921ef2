/** Writes Opus into Ogg (RFC 7845). */

import { joinBytes } from "./encoder.ts";
import { createOggStream } from "./ogg-page.ts";
import { type OpusContainer, opusHead, opusVendor, packetGranules } from "./opus-container.ts";

/**
 * Creates an Ogg container.
 * @param serial the number of the Ogg stream: 32 bits, preferably random.
 */
export function createOggContainer(serial: number): OpusContainer {
  const ogg = createOggStream(serial);
  return {
    start: (rate, preSkip) =>
      joinBytes([ogg.page([opusHead(rate, preSkip)], 0, { first: true }), ogg.page([comments()], 0)]),
    frame: (packets, total) => ogg.page(packets, total * packetGranules),
    end: (packets, _total, granule) => ogg.page(packets, granule, { last: true }),
  };
}

/** Returns the comment header with the name of the encoder and without comments (RFC 7845, section 5.2). */
function comments(): Uint8Array {
  const vendor = new TextEncoder().encode(opusVendor);
  const packet = new Uint8Array(8 + 4 + vendor.length + 4);
  packet.set(new TextEncoder().encode("OpusTags"));
  new DataView(packet.buffer).setUint32(8, vendor.length, true);
  packet.set(vendor, 12);
  return packet;
}
