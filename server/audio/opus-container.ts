/** Writes Opus packets into a container format. */
export interface OpusContainer {
  /**
   * Returns the bytes before the first packet.
   * @param preSkip the number of samples at 48 kHz that a player discards.
   */
  start(rate: number, preSkip: number): Uint8Array;
  /**
   * Returns the bytes of packets.
   * @param total the number of packets so far, including these packets.
   */
  frame(packets: readonly Uint8Array[], total: number): Uint8Array;
  /**
   * Returns the bytes of the last packets.
   * @param granule the end of the speech in samples at 48 kHz, including the pre-skip.
   */
  end(packets: readonly Uint8Array[], total: number, granule: number): Uint8Array;
}

/** Granules count samples at this rate, independently of the input's rate (RFC 7845, section 4). */
export const granuleRate = 48_000;
export const framesPerSecond = 50;
export const packetGranules = granuleRate / framesPerSecond;
export const opusVendor = "svc-tts, libopus";

/** Returns the identification header (RFC 7845, section 5.1), which both Ogg and WebM contain. */
export function opusHead(rate: number, preSkip: number): Uint8Array {
  const packet = new Uint8Array(19);
  const view = new DataView(packet.buffer);
  packet.set(new TextEncoder().encode("OpusHead"));
  view.setUint8(8, 1); // This byte is the version.
  view.setUint8(9, 1); // This byte is the number of channels.
  view.setUint16(10, preSkip, true);
  view.setUint32(12, rate, true);
  return packet; // The output gain and the channel mapping family are 0.
}
