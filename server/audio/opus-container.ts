/** Framing of Opus packets in a file or stream. */
export interface OpusContainer {
  /** The bytes before the first packet. @param preSkip samples at 48 kHz that a player discards. */
  start(rate: number, preSkip: number): Uint8Array;
  /** @param total packets so far, these included. */
  frame(packets: readonly Uint8Array[], total: number): Uint8Array;
  /** The last packets. @param granule end of the speech in samples at 48 kHz, with the pre-skip. */
  end(packets: readonly Uint8Array[], total: number, granule: number): Uint8Array;
}

/** Granules count samples at this rate, whatever the input's (RFC 7845, section 4). */
export const granuleRate = 48_000;
export const framesPerSecond = 50;
export const packetGranules = granuleRate / framesPerSecond;
export const opusVendor = "svc-tts, libopus";

/** The identification header (RFC 7845, section 5.1), which both Ogg and WebM contain. */
export function opusHead(rate: number, preSkip: number): Uint8Array {
  const packet = new Uint8Array(19);
  const view = new DataView(packet.buffer);
  packet.set(new TextEncoder().encode("OpusHead"));
  view.setUint8(8, 1); // version
  view.setUint8(9, 1); // channels
  view.setUint16(10, preSkip, true);
  view.setUint32(12, rate, true);
  return packet; // no gain, and the family of plain mono
}
