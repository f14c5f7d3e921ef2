import { gzipSync } from "node:zlib";

export interface File {
  /** With forward slashes, at most 255 bytes. */
  readonly path: string;
  readonly content: string;
}

const blockBytes = 512;
const longestName = 100;
const longestPrefix = 155;

/** A gzipped tar archive of text files (POSIX.1-1988 `ustar`), readable by their owner alone. `at` is their time, in milliseconds since the epoch. */
export function tarball(files: readonly File[], at: number): Buffer {
  const blocks = files.flatMap(({ path, content }) => {
    const body = Buffer.from(content);
    return [header(path, body.length, at), body, Buffer.alloc(padding(body.length))];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * blockBytes)]));
}

function padding(bytes: number): number {
  return (blockBytes - (bytes % blockBytes)) % blockBytes;
}

function header(path: string, bytes: number, at: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  const { prefix, name } = split(path);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  block.write(name, 0);
  block.write(octal(0o600, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(bytes, 11), 124);
  block.write(octal(Math.floor(at / 1000), 11), 136);
  // the checksum is counted with spaces in its own place
  block.write(" ".repeat(8), 148);
  block.write("0", 156);
  block.write("ustar\x0000", 257, "latin1");
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** A long path is cut at a slash, since each part has a field of its own. */
function split(path: string): { prefix: string; name: string } {
  if (Buffer.byteLength(path) <= longestName) return { prefix: "", name: path };
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    const prefix = path.slice(0, at);
    const name = path.slice(at + 1);
    if (Buffer.byteLength(name) <= longestName && Buffer.byteLength(prefix) <= longestPrefix)
      return { prefix, name };
  }
  throw new Error(`no room in a tar archive for the name ${path}`);
}
