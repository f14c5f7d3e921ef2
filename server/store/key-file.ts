import { parse, stringify, YAMLParseError } from "yaml";
import type { WatchedFile } from "../watched-file.ts";
import { type ApiKey, digestKey, type Scope, scopes } from "./key.ts";
import { findEntry, type KeyEntry, type KeyStore } from "./key-store.ts";

/** The shape of `keys.yaml`: digests only, so it may lie in Git. */
export interface KeyFile {
  readonly keys: readonly {
    readonly name: string;
    /** SHA-256 of the key, 64 hexadecimal digits. */
    readonly sha256: string;
    readonly scopes: readonly Scope[];
    /** RFC 3339. */
    readonly expiresAt?: string;
  }[];
}

const maxEntries = 10_000;

/** A read-only store over a file of digests, as a mounted Secret; follows the file's changes. */
export function createFileKeyStore(file: WatchedFile<readonly KeyEntry[]>): KeyStore {
  return { find: async (digest) => findEntry(file.current() ?? [], digest) };
}

/** @throws Error naming the entry and field that are wrong. */
export function parseKeyFile(text: string): readonly KeyEntry[] {
  const document: unknown = readYaml(text) ?? {};
  if (!isRecord(document)) throw new Error("a keys file must be a mapping with the list `keys`");
  const keys = document.keys ?? [];
  if (!Array.isArray(keys)) throw new Error("`keys` must be a list");
  if (keys.length > maxEntries) throw new Error(`\`keys\` may have ${maxEntries} entries at most`);
  return keys.map(readEntry);
}

/** The parser's own message would quote the file, and with it perhaps a key that somebody wrote there by mistake. */
function readYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const place = error instanceof YAMLParseError ? error.linePos?.[0] : undefined;
    const where = place ? ` at line ${place.line}, column ${place.col}` : "";
    throw new Error(`a keys file must be YAML, and this one is not${where}`);
  }
}

function readEntry(entry: unknown, index: number): KeyEntry {
  if (!isRecord(entry)) throw new Error(`keys[${index}] must be a mapping with name, sha256 and scopes`);
  const { name, sha256, expiresAt } = entry;
  const where = typeof name === "string" ? `keys[${index}] (${name})` : `keys[${index}]`;
  if (typeof name !== "string" || name === "") throw new Error(`${where}: name must be a text`);
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new Error(`${where}: sha256 must be 64 hexadecimal digits, as \`svc-tts keys create\` prints them`);
  }
  return {
    name,
    sha256: Buffer.from(sha256, "hex"),
    scopes: readScopes(entry.scopes, where),
    ...(expiresAt !== undefined && { expiresAt: readTime(expiresAt, where) }),
  };
}

function readScopes(value: unknown, where: string): readonly Scope[] {
  if (!Array.isArray(value) || value.some((scope) => !scopes.includes(scope))) {
    throw new Error(`${where}: scopes must be a list of ${scopes.join(", ")}`);
  }
  return value;
}

function readTime(value: unknown, where: string): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw new Error(`${where}: expiresAt must be a time as 2027-01-31T00:00:00Z`);
  return time;
}

/** The file's text with one more key. @throws Error when a key of that name is there already. */
export function addToKeyFile(text: string, key: string, facts: ApiKey): string {
  if (parseKeyFile(text).some((entry) => entry.name === facts.name)) {
    throw new Error(`there is a key named ${facts.name} already; choose another --name or remove that entry`);
  }
  const document = (parse(text) ?? {}) as Partial<KeyFile>;
  return stringify({ ...document, keys: [...(document.keys ?? []), toFileEntry(key, facts)] });
}

export function toFileEntry(key: string, facts: ApiKey): KeyFile["keys"][number] {
  return {
    name: facts.name,
    sha256: digestKey(key).toString("hex"),
    scopes: facts.scopes,
    ...(facts.expiresAt !== undefined && { expiresAt: new Date(facts.expiresAt).toISOString() }),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
