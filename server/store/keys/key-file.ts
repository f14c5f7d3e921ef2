import { parse, stringify, YAMLParseError } from "yaml";
import type { WatchedFile } from "../../../lib/watched-file.ts";
import { digestKey, type KeyFacts, type KeyLimits, type Scope, scopes } from "./key.ts";
import { type KeyManager, type ListedKey, latestEnd, nameTaken, noSuchKey } from "./key-manager.ts";
import { type KeyEntry, KeyIndex, type KeyStore } from "./key-store.ts";

/** The content of `keys.yaml`. The file contains only digests, so it may be stored in Git. */
export interface KeyFile {
  readonly keys: readonly {
    /** The name. Two entries with the same name are one key during its rotation. */
    readonly name: string;
    /** The SHA-256 digest of the key, 64 hexadecimal digits. */
    readonly sha256: string;
    readonly scopes: readonly Scope[];
    /** The end of the key, in the format of RFC 3339. */
    readonly expiresAt?: string;
    readonly team?: string;
    readonly requestsPerMinute?: number;
    readonly streams?: number;
  }[];
}

const maxEntries = 10_000;

/**
 * Creates a read-only store from a file of digests, such as a mounted Secret. The store follows changes of
 * the file.
 */
export function createFileKeyStore(file: WatchedFile<readonly KeyEntry[]>): KeyStore {
  let index = new KeyIndex(file.current() ?? []);
  file.onChange(() => {
    index = new KeyIndex(file.current() ?? []);
  });
  return { find: async (digest) => index.find(digest) };
}

/**
 * Parses a keys file.
 * @throws Error that names the invalid entry and field.
 */
export function parseKeyFile(text: string): readonly KeyEntry[] {
  const document: unknown = readYaml(text) ?? {};
  if (!isRecord(document)) throw new Error("the keys file must be a YAML mapping with the list `keys`");
  const keys = document.keys ?? [];
  if (!Array.isArray(keys)) throw new Error("`keys` in the keys file must be a list");
  if (keys.length > maxEntries)
    throw new Error(`\`keys\` has ${keys.length} entries; at most ${maxEntries} are allowed`);
  return keys.map(readEntry);
}

/**
 * Parses YAML. The error omits the parser's message. That message quotes the file, which may contain an API
 * key by mistake.
 */
function readYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const position = error instanceof YAMLParseError ? error.linePos?.[0] : undefined;
    const where = position ? ` at line ${position.line}, column ${position.col}` : "";
    throw new Error(`the keys file is not valid YAML${where}`);
  }
}

function readEntry(entry: unknown, index: number): KeyEntry {
  if (!isRecord(entry)) throw new Error(`keys[${index}] must be a mapping with name, sha256 and scopes`);
  const { name, sha256, expiresAt } = entry;
  const where = typeof name === "string" ? `keys[${index}] (${name})` : `keys[${index}]`;
  if (typeof name !== "string" || name === "")
    throw new Error(`${where}: name must be a string that is not empty`);
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new Error(`${where}: sha256 must be 64 hexadecimal digits, as \`svc-tts keys create\` prints it`);
  }
  return {
    id: name,
    name,
    sha256: Buffer.from(sha256, "hex"),
    scopes: readScopes(entry.scopes, where),
    ...(entry.team !== undefined && { team: readTeam(entry.team, where) }),
    limits: {
      ...readLimit(entry, "requestsPerMinute", where),
      ...readLimit(entry, "streams", where),
    },
    ...(expiresAt !== undefined && { expiresAt: readTime(expiresAt, where) }),
  };
}

function readScopes(value: unknown, where: string): readonly Scope[] {
  if (!Array.isArray(value) || value.some((scope) => !scopes.includes(scope))) {
    throw new Error(`${where}: scopes must be a list of ${scopes.join(", ")}`);
  }
  return value;
}

function readTeam(value: unknown, where: string): string {
  if (typeof value !== "string" || value === "")
    throw new Error(`${where}: team must be a string that is not empty`);
  return value;
}

function readLimit(entry: Record<string, unknown>, name: keyof KeyLimits, where: string): KeyLimits {
  const value = entry[name];
  if (value === undefined) return {};
  if (!Number.isInteger(value) || (value as number) < 1) {
    throw new Error(`${where}: ${name} must be an integer of at least 1`);
  }
  return { [name]: value };
}

function readTime(value: unknown, where: string): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw new Error(`${where}: expiresAt must be a time such as 2027-01-31T00:00:00Z`);
  return time;
}

/** Manages a keys file for the command line. Only one process may edit the file at a time. */
export function openKeyFileBook(file: {
  read(): string;
  write(text: string): void;
  /** Returns the time in milliseconds since the epoch. */
  now(): number;
}): KeyManager {
  const change = (edit: (keys: KeyFile["keys"]) => KeyFile["keys"]) => {
    const text = file.read();
    parseKeyFile(text); // This call detects invalid content before the file is written.
    const document = (parse(text) ?? {}) as Partial<KeyFile>;
    file.write(stringify({ ...document, keys: edit(document.keys ?? []) }));
  };
  return {
    async create(key, facts) {
      change((keys) => {
        if (keys.some(({ name }) => name === facts.name)) throw nameTaken(facts.name);
        return [...keys, toFileEntry(key, facts)];
      });
    },
    list: async () => toListing(parseKeyFile(file.read()), file.now()),
    async revoke(name) {
      change((keys) => {
        requireKey(keys, name);
        return keys.filter((entry) => entry.name !== name);
      });
    },
    async rotate(name, key, { endOfOthers, expiresAt }) {
      change((keys) => {
        const { expiresAt: _, ...last } = requireKey(keys, name);
        const allEnds = keys.filter((entry) => entry.name === name).map(endOf);
        const valid = allEnds.filter((end) => end === undefined || end > file.now());
        if (valid.length === 0) throw noSuchKey(name);
        const sha256 = digestKey(key).toString("hex");
        const added = { ...last, sha256, ...endAt(expiresAt ?? latestEnd(valid)) };
        return [...keys.map((entry) => (entry.name === name ? endedBy(entry, endOfOthers) : entry)), added];
      });
    },
    close: async () => undefined,
  };
}

type FileEntry = KeyFile["keys"][number];

function requireKey(keys: KeyFile["keys"], name: string): FileEntry {
  const found = keys.findLast((entry) => entry.name === name);
  if (!found) throw noSuchKey(name);
  return found;
}

function endOf({ expiresAt }: FileEntry): number | undefined {
  return expiresAt === undefined ? undefined : Date.parse(expiresAt);
}

function endedBy(entry: FileEntry, endMs: number): FileEntry {
  return { ...entry, ...endAt(Math.min(endOf(entry) ?? Number.POSITIVE_INFINITY, endMs)) };
}

function endAt(timeMs: number | undefined): { readonly expiresAt?: string } {
  return timeMs === undefined ? {} : { expiresAt: new Date(timeMs).toISOString() };
}

function toListing(entries: readonly KeyEntry[], now: number): readonly ListedKey[] {
  const valid = entries.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now);
  return [...Map.groupBy(valid, ({ name }) => name)].map(([name, secrets]) => {
    const { team, scopes, limits } = secrets[0] as KeyEntry;
    return {
      id: name,
      name,
      scopes,
      ...(team !== undefined && { team }),
      ...(limits && { limits }),
      secrets: secrets.map(({ sha256, expiresAt }) => ({
        digest: sha256.toString("hex", 0, 4),
        ...(expiresAt !== undefined && { expiresAt }),
      })),
    };
  });
}

export function toFileEntry(key: string, facts: KeyFacts): KeyFile["keys"][number] {
  return {
    name: facts.name,
    sha256: digestKey(key).toString("hex"),
    scopes: facts.scopes,
    ...endAt(facts.expiresAt),
    ...(facts.team !== undefined && { team: facts.team }),
    ...facts.limits,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
