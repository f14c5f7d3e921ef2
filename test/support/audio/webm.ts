/** Reads Opus in WebM by its specifications (RFC 8794 and RFC 9559), without code of the writer. */

interface WebmPacket {
  /** The start in milliseconds: the time of the cluster plus the time of the packet in the cluster. */
  readonly atMs: number;
  readonly bytes: Buffer;
  /** The duration at the end of the packet that a player discards. */
  readonly discardNs: number;
}

interface WebmFile {
  readonly docType: string;
  readonly codec: string;
  readonly codecDelayNs: number;
  readonly seekPreRollNs: number;
  readonly samplingRate: number;
  readonly channels: number;
  /** The identification header of Opus (RFC 7845, section 5.1). */
  readonly opusHead: Buffer;
  readonly packets: readonly WebmPacket[];
}

interface Element {
  /** The hexadecimal ID, as in the specification. */
  readonly id: string;
  readonly content: Buffer;
}

/** @throws Error if an element is missing, or does not end inside the element that contains it. */
export function readWebm(file: Buffer): WebmFile {
  const [header, segment] = elementsOf(file);
  if (header?.id !== "1a45dfa3" || segment?.id !== "18538067") throw new Error("this is not EBML");
  const parts = elementsOf(segment.content);
  const entry = childOf(childOf(segment.content, "1654ae6b"), "ae");
  const audio = childOf(entry, "e1");
  return {
    docType: childOf(header.content, "4282").toString(),
    codec: childOf(entry, "86").toString(),
    codecDelayNs: unsigned(childOf(entry, "56aa")),
    seekPreRollNs: unsigned(childOf(entry, "56bb")),
    samplingRate: childOf(audio, "b5").readFloatBE(0),
    channels: unsigned(childOf(audio, "9f")),
    opusHead: childOf(entry, "63a2"),
    packets: parts.filter(({ id }) => id === "1f43b675").flatMap(({ content }) => packetsOf(content)),
  };
}

function packetsOf(cluster: Buffer): WebmPacket[] {
  const startMs = unsigned(childOf(cluster, "e7"));
  return elementsOf(cluster).flatMap(({ id, content }) => {
    if (id === "a3") return [packetOf(content, startMs, 0)];
    if (id !== "a0") return [];
    const padding = childOf(content, "75a2");
    return [packetOf(childOf(content, "a1"), startMs, padding.readIntBE(0, padding.length))];
  });
}

/**
 * @param block the content of a block: the number of the track, the time in the cluster, flags, and the
 * packet.
 */
function packetOf(block: Buffer, startMs: number, discardNs: number): WebmPacket {
  if (block.readUInt8(0) !== 0x81) throw new Error("this packet does not belong to track 1");
  return { atMs: startMs + block.readInt16BE(1), bytes: block.subarray(4), discardNs };
}

function childOf(parent: Buffer, id: string): Buffer {
  const found = elementsOf(parent).find((element) => element.id === id);
  if (!found) throw new Error(`the element ${id} is missing`);
  return found.content;
}

function elementsOf(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const idEnd = at + lengthOf(bytes, at);
    const start = idEnd + lengthOf(bytes, idEnd);
    const end = start + (sizeIn(bytes.subarray(idEnd, start)) ?? bytes.length - start);
    const id = bytes.toString("hex", at, idEnd);
    if (end > bytes.length) throw new Error(`the element ${id} is longer than its parent`);
    elements.push({ id, content: bytes.subarray(start, end) });
    at = end;
  }
  return elements;
}

/**
 * Returns the length of a variable-size number in bytes. The number of leading zeros determines the length.
 */
function lengthOf(bytes: Buffer, at: number): number {
  return Math.clz32(bytes.readUInt8(at)) - 23;
}

/** Returns undefined if all bits are ones, because such an element ends with its parent. */
function sizeIn(number: Buffer): number | undefined {
  const ones = (1n << BigInt(7 * number.length)) - 1n;
  const size = BigInt(`0x${number.toString("hex")}`) & ones;
  return size === ones ? undefined : Number(size);
}

function unsigned(content: Buffer): number {
  return content.readUIntBE(0, content.length);
}
