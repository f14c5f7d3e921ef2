/**
 * Writes Opus into WebM (RFC 9559, and the Matroska codec mapping of Opus). The file is a live stream, which
 * consists of clusters and has no index.
 */

import { joinBytes } from "./encoder.ts";
import { framesPerSecond, granuleRate, type OpusContainer, opusHead, opusVendor } from "./opus-container.ts";

/** The element identifiers of EBML (RFC 8794) and Matroska (RFC 9559). */
const ids = {
  ebml: 0x1a45dfa3,
  docType: 0x4282,
  docTypeVersion: 0x4287,
  docTypeReadVersion: 0x4285,
  segment: 0x18538067,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  muxingApp: 0x4d80,
  writingApp: 0x5741,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackUid: 0x73c5,
  trackType: 0x83,
  flagLacing: 0x9c,
  codecId: 0x86,
  codecPrivate: 0x63a2,
  codecDelay: 0x56aa,
  seekPreRoll: 0x56bb,
  audio: 0xe1,
  samplingFrequency: 0xb5,
  channels: 0x9f,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
  discardPadding: 0x75a2,
} as const;

const audioTrack = 2;
const keyframe = 0x80;
const trackNumber = 1;
const packetMs = 1000 / framesPerSecond;
const nanosPerSecond = 1e9;
const nanosPerMs = 1e6;
/** The pre-roll after a seek. The Matroska mapping of Opus requires 80 milliseconds. */
const seekPreRollNs = 80 * nanosPerMs;
/** A size in which all bits are one means an unknown size (RFC 8794, section 6.2). */
const unknownSize = Uint8Array.of(0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);

export function createWebmContainer(): OpusContainer {
  return {
    start: (rate, preSkip) =>
      joinBytes([header(), bigEndian(ids.segment), unknownSize, tracks(rate, preSkip)]),
    frame: (packets, total) => cluster(packets.map(simpleBlock), total),
    end: (packets, total, granule) => {
      const padding = (total * granuleRate) / framesPerSecond - granule;
      const last = packets.length - 1;
      const blocks = packets.map((packet, at) =>
        at === last ? lastBlock(packet, at, padding) : simpleBlock(packet, at),
      );
      return cluster(blocks, total);
    },
  };
}

function header(): Uint8Array {
  return element(
    ids.ebml,
    text(ids.docType, "webm"),
    unsigned(ids.docTypeVersion, 4),
    unsigned(ids.docTypeReadVersion, 2),
  );
}

function tracks(rate: number, preSkip: number): Uint8Array {
  const info = element(
    ids.info,
    unsigned(ids.timestampScale, nanosPerMs),
    text(ids.muxingApp, "svc-tts"),
    text(ids.writingApp, opusVendor),
  );
  const entry = element(
    ids.trackEntry,
    unsigned(ids.trackNumber, trackNumber),
    unsigned(ids.trackUid, trackNumber),
    unsigned(ids.trackType, audioTrack),
    unsigned(ids.flagLacing, 0),
    text(ids.codecId, "A_OPUS"),
    element(ids.codecPrivate, opusHead(rate, preSkip)),
    unsigned(ids.codecDelay, nanosOf(preSkip)),
    unsigned(ids.seekPreRoll, seekPreRollNs),
    element(ids.audio, float(ids.samplingFrequency, granuleRate), unsigned(ids.channels, 1)),
  );
  return joinBytes([info, element(ids.tracks, entry)]);
}

/**
 * Returns a cluster.
 * @param total the number of packets so far, including the packets of the cluster.
 */
function cluster(blocks: readonly Uint8Array[], total: number): Uint8Array {
  const startMs = (total - blocks.length) * packetMs;
  return element(ids.cluster, unsigned(ids.timestamp, startMs), ...blocks);
}

/**
 * Returns a block with one packet.
 * @param at the index of the packet in its cluster.
 */
function simpleBlock(packet: Uint8Array, at: number): Uint8Array {
  return element(ids.simpleBlock, blockHeader(at, keyframe), packet);
}

/**
 * Returns the last block as a block group, because only a block group can state that a player discards the
 * end.
 * @param padding the number of discarded samples at 48 kHz.
 */
function lastBlock(packet: Uint8Array, at: number, padding: number): Uint8Array {
  const discarded = new Uint8Array(4);
  new DataView(discarded.buffer).setInt32(0, nanosOf(padding));
  return element(
    ids.blockGroup,
    element(ids.block, blockHeader(at, 0), packet),
    element(ids.discardPadding, discarded),
  );
}

function blockHeader(at: number, flags: number): Uint8Array {
  const bytes = new Uint8Array(4);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, 0x80 | trackNumber); // The track number has one byte.
  view.setInt16(1, at * packetMs);
  view.setUint8(3, flags);
  return bytes;
}

function nanosOf(granules: number): number {
  return Math.round((granules * nanosPerSecond) / granuleRate);
}

function element(id: number, ...content: readonly Uint8Array[]): Uint8Array {
  const length = content.reduce((sum, piece) => sum + piece.length, 0);
  const size = new Uint8Array(4);
  new DataView(size.buffer).setUint32(0, 0x1000_0000 | length); // The size has four bytes.
  return joinBytes([bigEndian(id), size, ...content]);
}

function unsigned(id: number, value: number): Uint8Array {
  return element(id, bigEndian(value));
}

function text(id: number, value: string): Uint8Array {
  return element(id, new TextEncoder().encode(value));
}

function float(id: number, value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setFloat32(0, value);
  return element(id, bytes);
}

/** Encodes a number in as few bytes as possible. The number zero has one byte. */
function bigEndian(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; rest > 0 || bytes.length === 0; rest = Math.floor(rest / 256))
    bytes.unshift(rest % 256);
  return Uint8Array.from(bytes);
}
