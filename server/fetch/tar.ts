import { gunzipSync } from "node:zlib";
import { FetchFailure } from "./failure.ts";

/** Reads compressed tar archives (POSIX.1-1988, ustar) that are small enough for memory, as npm packs them. */

const blockBytes = 512;
const regularFile = ["0", "\0"];
const mostBytes = 512 * 1024 * 1024;

/** The regular files by their names. @throws FetchFailure when the archive is broken. */
export function tarEntries(compressed: Buffer): Map<string, Buffer> {
  const archive = unpacked(compressed);
  const files = new Map<string, Buffer>();
  for (let at = 0; at + blockBytes <= archive.length && archive[at] !== 0; ) {
    const text = (offset: number, length: number) =>
      archive.toString("utf8", at + offset, at + offset + length).split("\0", 1)[0] ?? "";
    const bytes = Number.parseInt(text(124, 12), 8);
    const start = at + blockBytes;
    if (!(bytes >= 0) || start + bytes > archive.length) throw new FetchFailure("the archive is broken");
    const type = archive.toString("latin1", at + 156, at + 157);
    const folder = text(257, 5) === "ustar" ? text(345, 155) : "";
    const name = folder === "" ? text(0, 100) : `${folder}/${text(0, 100)}`;
    if (regularFile.includes(type)) files.set(name, archive.subarray(start, start + bytes));
    at = start + Math.ceil(bytes / blockBytes) * blockBytes;
  }
  return files;
}

function unpacked(compressed: Buffer): Buffer {
  try {
    return gunzipSync(compressed, { maxOutputLength: mostBytes });
  } catch (cause) {
    throw new FetchFailure("the archive is broken", { cause });
  }
}
