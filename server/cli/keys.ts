import { existsSync, readFileSync } from "node:fs";
import { stringify } from "yaml";
import { env as names } from "../../config/contract/names.ts";
import type { Command, OptionValues, Shell } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { openDatabase, StoreFailure, shownPlace } from "../store/database/database.ts";
import { createKey, type KeyFacts, type Scope, scopes } from "../store/keys/key.ts";
import { openKeyFileBook, toFileEntry } from "../store/keys/key-file.ts";
import { type KeyManager, KeyManagerError, type ListedKey } from "../store/keys/key-manager.ts";
import { openKeyTableBook } from "../store/keys/key-table.ts";
import { writePrivate } from "./private-file.ts";

const hour = 3_600_000;

const where = {
  file: { value: "PATH", help: "a keys.yaml file with digests of keys" },
  database: {
    value: "PLACE",
    help: `the server's SQLite file or postgres:// URL; default: the value of ${names.database}`,
  },
};
const expires = {
  value: "TIME",
  help: "expiry, such as 2027-01-31 or 2027-01-31T12:00:00Z; default: never",
};
const name = { value: "NAME", help: "name of the key", required: true } as const;

const createCommand: Command = {
  name: "keys create",
  summary: "create an API key: print the key once, and store its digest",
  options: {
    name: { value: "NAME", help: "the user or program that uses the key", required: true },
    scopes: { value: "LIST", help: `comma-separated: ${scopes.join(", ")}`, default: "tts:write" },
    expires,
    team: { value: "NAME", help: "team whose words and lexicon the key uses" },
    "requests-per-minute": { value: "N", help: "rate limit; default: the server's limit" },
    streams: { value: "N", help: "concurrent streams; default: the server's limit" },
    ...where,
  },
  notes: "Without --file and --database, the command prints an entry for keys.yaml.",
  async run(shell, options) {
    const facts = readFacts(options, shell.now());
    const key = createKey();
    const place = placeOf(shell, options);
    if (place !== undefined) await withBook(shell, options, (book) => book.create(key, facts));
    shell.print(key);
    // The key is the only line on standard output, so that a script can read it into a variable.
    shell.complain(
      `The API key ${facts.name} was created. It is shown only once. ${whereDigest(place, key, facts)}`,
    );
    return 0;
  },
};

const listCommand: Command = {
  name: "keys list",
  summary: "list the valid API keys",
  options: where,
  async run(shell, options) {
    const keys = await withBook(shell, options, (book) => book.list());
    shell.print(keys.length === 0 ? "There are no keys." : table(keys));
    return 0;
  },
};

const revokeCommand: Command = {
  name: "keys revoke",
  summary: "revoke an API key; running servers reject it within 5 seconds",
  options: { name, ...where },
  async run(shell, options) {
    await withBook(shell, options, (book) => book.revoke(options.name ?? ""));
    shell.complain(`The key ${options.name} was revoked.`);
    return 0;
  },
};

const rotateCommand: Command = {
  name: "keys rotate",
  summary: "rotate an API key; its previous secrets stay valid for the overlap",
  options: {
    name,
    overlap: { value: "HOURS", help: "hours for which the previous secrets stay valid", default: "24" },
    expires: {
      ...expires,
      help: "expiry of the new secret, such as 2027-01-31; default: the expiry of the key",
    },
    ...where,
  },
  async run(shell, options) {
    const now = shell.now();
    const overlapHours = readNumber(options, "overlap", 0, 24 * 366) ?? 24;
    const expiresAt = readExpiry(options, now);
    const rotation = {
      endOfOthers: now + overlapHours * hour,
      ...(expiresAt !== undefined && { expiresAt }),
    };
    const key = createKey();
    await withBook(shell, options, (book) => book.rotate(options.name ?? "", key, rotation));
    shell.print(key);
    shell.complain(
      `The API key ${options.name} has a new secret. It is shown only once. The earlier secret expires ${date(rotation.endOfOthers)}.`,
    );
    return 0;
  },
};

export const keysCommands: readonly Command[] = [createCommand, listCommand, revokeCommand, rotateCommand];

interface Place {
  readonly kind: "file" | "database";
  readonly path: string;
  /** The path in messages, which does not contain the password of a URL. */
  readonly name: string;
}

function placeOf(shell: Shell, { file, database }: OptionValues): Place | undefined {
  if (file !== undefined && database !== undefined) {
    throw new UsageError("Set either --file or --database, not both.");
  }
  if (file !== undefined) return { kind: "file", path: file, name: file };
  const path = database ?? (shell.env[names.database] || undefined);
  return path === undefined ? undefined : { kind: "database", path, name: shownPlace(path) };
}

async function withBook<Result>(
  shell: Shell,
  options: OptionValues,
  work: (book: KeyManager) => Promise<Result>,
): Promise<Result> {
  const place = placeOf(shell, options);
  if (!place) throw new UsageError(`Set --file PATH or --database PLACE, where the keys are stored.`);
  const book = openBook(place, shell);
  try {
    return await work(book);
  } catch (cause) {
    if (cause instanceof StoreFailure) throw new UsageError(sentence(cause.message), { cause });
    if (cause instanceof KeyManagerError || place.kind === "file") {
      throw new UsageError(`${place.name}: ${(cause as Error).message}`, { cause });
    }
    throw cause;
  } finally {
    await book.close();
  }
}

function openBook({ kind, path }: Place, { now, env }: Shell): KeyManager {
  if (kind === "database") {
    const passwordFile = env[names.databasePasswordFile] || undefined;
    return openKeyTableBook(openDatabase(path, { passwordFile }), now);
  }
  return openKeyFileBook({
    read: () => (existsSync(path) ? readFileSync(path, "utf8") : ""),
    write: (text) => writePrivate(path, text),
    now,
  });
}

function whereDigest(place: Place | undefined, key: string, facts: KeyFacts): string {
  if (place) return `${place.name} contains the digest of the key.`;
  return `The entry for keys.yaml:\n\n${stringify({ keys: [toFileEntry(key, facts)] }).trimEnd()}`;
}

function readFacts(options: OptionValues, now: number): KeyFacts {
  const { name = "", scopes: list = "", team } = options;
  const requested = list.split(",").map((scope) => scope.trim());
  const unknown = requested.find((scope) => !scopes.includes(scope as Scope));
  if (unknown !== undefined) {
    throw new UsageError(
      `--scopes must contain only ${scopes.join(", ")}; ${JSON.stringify(unknown)} is not a scope.`,
    );
  }
  const expiresAt = readExpiry(options, now);
  const requestsPerMinute = readNumber(options, "requests-per-minute", 1, 1_000_000);
  const streams = readNumber(options, "streams", 1, 1_000_000);
  return {
    name,
    scopes: requested as Scope[],
    ...(team !== undefined && { team }),
    ...(expiresAt !== undefined && { expiresAt }),
    limits: {
      ...(requestsPerMinute !== undefined && { requestsPerMinute }),
      ...(streams !== undefined && { streams }),
    },
  };
}

function readExpiry({ expires: given }: OptionValues, now: number): number | undefined {
  if (given === undefined) return undefined;
  const expiresAt = Date.parse(given);
  if (expiresAt > now) return expiresAt;
  throw new UsageError(
    `--expires must be a future time, such as 2027-01-31; it is ${JSON.stringify(given)}.`,
  );
}

function readNumber(options: OptionValues, flag: string, from: number, to: number): number | undefined {
  const given = options[flag];
  if (given === undefined) return undefined;
  const value = Number(given);
  if (Number.isInteger(value) && value >= from && value <= to) return value;
  throw new UsageError(`--${flag} must be an integer from ${from} to ${to}; it is ${JSON.stringify(given)}.`);
}

/** Formats the keys with one line for each secret. During a rotation, a key has two secrets. */
function table(keys: readonly ListedKey[]): string {
  const head = ["NAME", "TEAM", "SCOPES", "RATE/MIN", "STREAMS", "DIGEST", "EXPIRES", "LAST USED"];
  const rows = keys.flatMap((key) =>
    key.secrets.map(({ digest, expiresAt, lastUsedAt }) => [
      key.name,
      key.team ?? "-",
      key.scopes.join(","),
      String(key.limits?.requestsPerMinute ?? "-"),
      String(key.limits?.streams ?? "-"),
      digest,
      date(expiresAt),
      date(lastUsedAt),
    ]),
  );
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function date(timeMs: number | undefined): string {
  return timeMs === undefined ? "-" : `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
