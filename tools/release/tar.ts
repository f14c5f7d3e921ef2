/**
 * Rewrites tar archives so that the same files give the same bytes: the entries are sorted, and all entries
 * have the same time. https://reproducible-builds.org/docs/archives describes the method.
 */

const BLOCK_BYTES = 512;
/** Fields of a POSIX tar header (pax, IEEE Std 1003.1): first byte and length. */
const FIELDS = {
  name: [0, 100],
  size: [124, 12],
  modified: [136, 12],
  checksum: [148, 8],
  kind: [156, 1],
  userName: [265, 32],
  groupName: [297, 32],
  prefix: [345, 155],
} as const satisfies Record<string, readonly [number, number]>;
/** First byte and end of the times of access and of status change in a header of GNU tar. */
const GNU_TIMES = [345, 369] as const;
/** Records of a pax header with times. */
const TIMES = ["atime", "ctime", "mtime"];
/** Kinds of entries. */
const HARD_LINK = "1";
const PAX_RECORDS = "x";
const GLOBAL_RECORDS = "g";
const GNU_LONG_NAME = "L";
const GNU_LONG_LINK = "K";
/** Entries that extend the header of the next entry. */
const EXTENSIONS: readonly string[] = [PAX_RECORDS, GNU_LONG_NAME, GNU_LONG_LINK];

interface Entry {
  readonly path: string;
  readonly kind: string;
  /** Header blocks that extend the header of this entry, such as a long name. */
  readonly extensions: readonly Buffer[];
  readonly header: Buffer;
  readonly content: Buffer;
}

/**
 * Returns the archive in a normal form, in which every entry has the time `epochSeconds`. Hard links follow
 * all other entries, because their targets must precede them.
 * @param isKept returns whether the archive keeps the entry with this path
 */
export function normalizeTar(
  archive: Buffer,
  epochSeconds: number,
  isKept: (path: string) => boolean = () => true,
): Buffer {
  const entries = readEntries(archive).filter(({ path }) => isKept(path));
  const sorted = entries.toSorted(
    (a, b) => Number(a.kind === HARD_LINK) - Number(b.kind === HARD_LINK) || compareBytes(a.path, b.path),
  );
  const blocks = sorted.flatMap((entry) => [
    ...entry.extensions,
    withoutTimes(entry.header, epochSeconds),
    padded(entry.content),
  ]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

/** Returns the paths of the entries of an archive. */
export const tarPaths = (archive: Buffer): string[] => readEntries(archive).map((entry) => entry.path);

/** Compares two texts without a locale. */
const compareBytes = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function readEntries(archive: Buffer): Entry[] {
  const entries: Entry[] = [];
  let extensions: Buffer[] = [];
  let path: string | undefined;
  for (const { header, content } of readBlocks(archive)) {
    const kind = textOf(header, FIELDS.kind);
    if (kind === GLOBAL_RECORDS) continue;
    if (!EXTENSIONS.includes(kind)) {
      entries.push({ path: path ?? pathOf(header), kind, extensions, header, content });
      extensions = [];
      path = undefined;
      continue;
    }
    const records = kind === PAX_RECORDS ? paxRecords(content) : undefined;
    path = extendedPath(kind, content, records) ?? path;
    extensions.push(...extensionBlocks(header, content, records));
  }
  return entries;
}

/** Yields the headers of the archive, each with the content that follows it. */
function* readBlocks(archive: Buffer): Generator<{ header: Buffer; content: Buffer }> {
  for (let offset = 0; offset + BLOCK_BYTES <= archive.length; ) {
    const header = archive.subarray(offset, offset + BLOCK_BYTES);
    // A block of zeros ends the archive.
    if (header.every((byte) => byte === 0)) return;
    if (header.toString("latin1", 257, 262) !== "ustar") throw new Error("the layer is not a tar archive");
    const start = offset + BLOCK_BYTES;
    const content = archive.subarray(start, start + numberOf(header, FIELDS.size));
    yield { header, content };
    offset = start + content.length + missingBytes(content);
  }
}

/** Returns the path that an extension header gives to the next entry. */
function extendedPath(
  kind: string,
  content: Buffer,
  records: ReadonlyMap<string, string> | undefined,
): string | undefined {
  if (records?.has("size")) throw new Error("a file of the archive is larger than 8 GiB");
  return kind === GNU_LONG_NAME ? textOf(content, [0, content.length]) : records?.get("path");
}

/** Returns the blocks of an extension header. A pax header loses its times, and disappears without records. */
function extensionBlocks(
  header: Buffer,
  content: Buffer,
  records: ReadonlyMap<string, string> | undefined,
): Buffer[] {
  if (records === undefined) return [withoutTimes(header, 0), padded(content)];
  const kept = [...records].filter(([key]) => !TIMES.includes(key));
  if (kept.length === 0) return [];
  const body = Buffer.concat(
    kept.toSorted(([a], [b]) => compareBytes(a, b)).map(([key, value]) => paxRecord(key, value)),
  );
  const own = Buffer.from(header);
  // GNU tar puts the number of its process into the name of a pax header.
  writeText(own, FIELDS.name, "PaxHeaders");
  writeText(own, FIELDS.prefix, "");
  writeText(own, FIELDS.size, octal(body.length, FIELDS.size[1]));
  return [withoutTimes(own, 0), padded(body)];
}

function withoutTimes(header: Buffer, epochSeconds: number): Buffer {
  const own = Buffer.from(header);
  writeText(own, FIELDS.modified, octal(epochSeconds, FIELDS.modified[1]));
  if (isGnu(header)) own.fill(0, ...GNU_TIMES);
  // The numbers of user and group are sufficient. Their names depend on the machine of the build.
  writeText(own, FIELDS.userName, "");
  writeText(own, FIELDS.groupName, "");
  writeText(own, FIELDS.checksum, " ".repeat(FIELDS.checksum[1]));
  const sum = own.reduce((total, byte) => total + byte, 0);
  writeText(own, FIELDS.checksum, `${sum.toString(8).padStart(6, "0")}\0 `);
  return own;
}

/** Parses records of the form "LENGTH KEY=VALUE\n". Values are bytes, so this function reads them as Latin-1. */
function paxRecords(content: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let offset = 0; offset < content.length; ) {
    const space = content.indexOf(" ", offset);
    const length = Number(content.toString("latin1", offset, space));
    if (space < 0 || !(length > 0)) throw new Error("a pax header of the archive has an invalid length");
    const record = content.toString("latin1", space + 1, offset + length - 1);
    const equals = record.indexOf("=");
    records.set(record.slice(0, equals), record.slice(equals + 1));
    offset += length;
  }
  return records;
}

function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.from(`${length}${rest}`, "latin1");
}

function pathOf(header: Buffer): string {
  const prefix = textOf(header, FIELDS.prefix);
  const name = textOf(header, FIELDS.name);
  return !isGnu(header) && prefix ? `${prefix}/${name}` : name;
}

const isGnu = (header: Buffer): boolean => header.toString("latin1", 257, 263) === "ustar ";

/** Reads an octal number, or a binary number of GNU tar, which has the highest bit set. */
function numberOf(header: Buffer, [start, length]: readonly [number, number]): number {
  if (((header[start] ?? 0) & 0x80) !== 0) return Number(header.readBigUInt64BE(start + length - 8));
  const text = textOf(header, [start, length]).trim();
  return text === "" ? 0 : Number.parseInt(text, 8);
}

function textOf(bytes: Buffer, [start, length]: readonly [number, number]): string {
  const end = bytes.indexOf(0, start);
  const limit = start + length;
  return bytes.toString("latin1", start, end < 0 || end > limit ? limit : end);
}

function writeText(header: Buffer, [start, length]: readonly [number, number], text: string): void {
  header.fill(0, start, start + length);
  header.write(text, start, length, "latin1");
}

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;

const missingBytes = (content: Buffer): number =>
  (BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES;

const padded = (content: Buffer): Buffer => Buffer.concat([content, Buffer.alloc(missingBytes(content))]);
