import { crc32, inflateRawSync } from "node:zlib";
import { FetchFailure } from "./failure.ts";

/**
 * Reads zip archives (PKWARE's APPNOTE 6.3) in memory. Entries must be stored or deflated, and not encrypted.
 */

const endSignature = 0x06_05_4b_50;
const entrySignature = 0x02_01_4b_50;
const endBytes = 22;
const entryBytes = 46;
const localBytes = 30;
const methods = { stored: 0, deflated: 8 } as const;

/**
 * Returns the content of an entry.
 * @throws FetchFailure if the archive is damaged or has no such entry.
 */
export function zipEntry(archive: Buffer, name: string): Buffer {
  try {
    const found = directory(archive).find((entry) => entry.name === name);
    if (!found) throw new FetchFailure(`the zip archive has no file ${name}`);
    return read(archive, found);
  } catch (cause) {
    if (cause instanceof FetchFailure) throw cause;
    throw new FetchFailure("the zip archive is damaged; fetch it again", { cause });
  }
}

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly bytes: number;
  readonly offset: number;
}

function directory(archive: Buffer): Entry[] {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  if (end < 0 || end + endBytes > archive.length || archive.readUInt32LE(end) !== endSignature) {
    throw new FetchFailure("the file is not a zip archive");
  }
  const entries: Entry[] = [];
  let at = archive.readUInt32LE(end + 16);
  for (let count = archive.readUInt16LE(end + 10); count > 0; count--) {
    if (archive.readUInt32LE(at) !== entrySignature)
      throw new FetchFailure("the zip archive is damaged; fetch it again");
    const nameBytes = archive.readUInt16LE(at + 28);
    entries.push({
      name: archive.toString("utf8", at + entryBytes, at + entryBytes + nameBytes),
      method: archive.readUInt16LE(at + 10),
      crc: archive.readUInt32LE(at + 16),
      packedBytes: archive.readUInt32LE(at + 20),
      bytes: archive.readUInt32LE(at + 24),
      offset: archive.readUInt32LE(at + 42),
    });
    at += entryBytes + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return entries;
}

function read(archive: Buffer, { name, method, crc, packedBytes, bytes, offset }: Entry): Buffer {
  const extra = archive.readUInt16LE(offset + 26) + archive.readUInt16LE(offset + 28);
  const packed = archive.subarray(offset + localBytes + extra, offset + localBytes + extra + packedBytes);
  const content = unpack(packed, method, bytes);
  if (content.length !== bytes || crc32(content) !== crc)
    throw new FetchFailure(`${name} is damaged in the zip archive; fetch the archive again`);
  return content;
}

function unpack(packed: Buffer, method: number, bytes: number): Buffer {
  if (method === methods.stored) return packed;
  if (method === methods.deflated) return inflateRawSync(packed, { maxOutputLength: Math.max(1, bytes) });
  throw new FetchFailure(
    `the zip archive uses compression method ${method}, which is not supported; its files must be stored or deflated`,
  );
}
