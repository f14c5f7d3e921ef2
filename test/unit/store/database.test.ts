import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../../server/store/database.ts";
import { createKey, digestKey, type KeyFacts } from "../../../server/store/key.ts";
import type { KeyBook } from "../../../server/store/key-book.ts";
import { openKeyFileBook } from "../../../server/store/key-file.ts";
import { KeyIndex } from "../../../server/store/key-store.ts";
import { createKeyTable, openKeyTableBook } from "../../../server/store/key-table.ts";
import { createOovStore, type MetWord } from "../../../server/store/oov-store.ts";

let folder: string;
let files = 0;
const open: Database[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-database-"));
});
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

function newPath(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

function opened(path = newPath()): Database {
  const database = openDatabase(path);
  open.push(database);
  return database;
}

const now = Date.UTC(2030, 0, 1);
const hour = 3_600_000;
const facts: KeyFacts = { name: "app", scopes: ["tts:write"], limits: { streams: 3 }, team: "blue" };

describe("a key book", () => {
  const books: [string, () => KeyBook][] = [
    ["of a database", () => openKeyTableBook(opened(), () => now)],
    [
      "of a file",
      () => {
        let text = "";
        const write = (next: string) => {
          text = next;
        };
        return openKeyFileBook({ read: () => text, write, now: () => now });
      },
    ],
  ];

  it.each(books)("%s makes, lists, rotates and revokes keys", async (_, openBook) => {
    const book = openBook();
    const [first, second] = [createKey(), createKey()];
    await book.create(first, facts);
    await book.create(createKey(), { name: "other", scopes: ["admin", "oov:read"], expiresAt: now + hour });
    await expect(book.create(createKey(), facts)).rejects.toThrow("there is a key named app already");
    await book.rotate("app", second, { endOfOthers: now + 2 * hour });
    await book.rotate("other", createKey(), { endOfOthers: now + 2 * hour, expiresAt: now + 9 * hour });
    const digest = (key: string) => digestKey(key).toString("hex").slice(0, 8);
    expect(await book.list()).toMatchObject([
      {
        ...facts,
        secrets: [{ digest: digest(first), expiresAt: now + 2 * hour }, { digest: digest(second) }],
      },
      { name: "other", secrets: [{ expiresAt: now + hour }, { expiresAt: now + 9 * hour }] },
    ]);
    await book.revoke("app");
    expect((await book.list()).map(({ name }) => name)).toEqual(["other"]);
    await expect(book.revoke("app")).rejects.toThrow("no key named app");
    await expect(book.rotate("app", createKey(), { endOfOthers: 0 })).rejects.toThrow("no key named app");
    await book.create(createKey(), facts); // the name is free again
  });
});

describe("the table of keys", () => {
  it("has what is good now, by the same id through a rotation, and never the key itself", async () => {
    const path = newPath();
    const database = opened(path);
    const book = openKeyTableBook(database, () => now);
    const table = createKeyTable(database, () => now);
    const [old, fresh, expired] = [createKey(), createKey(), createKey()];
    const before = await table.revision();
    await book.create(old, facts);
    await book.rotate("app", fresh, { endOfOthers: now + hour });
    await book.create(expired, { ...facts, name: "expired", expiresAt: now });
    expect(await table.revision()).toBe(before + 3);
    const index = new KeyIndex(await table.load());
    expect(index.find(digestKey(old))).toMatchObject({ ...facts, expiresAt: now + hour });
    expect(index.find(digestKey(fresh))?.id).toBe(index.find(digestKey(old))?.id);
    expect(index.find(digestKey(expired))).toBeUndefined();
    await table.used(new Map([[digestKey(fresh).toString("hex"), now]]));
    expect((await book.list())[0]?.secrets.map(({ lastUsedAt }) => lastUsedAt)).toEqual([undefined, now]);
    expect(await table.revision()).toBe(before + 3); // a use is no change
    await book.revoke("app");
    expect(await table.load()).toEqual([]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await database.close();
    const bytes = new DatabaseSync(path)
      .prepare("select group_concat(sha256) as all_of from key_secrets")
      .get();
    expect(JSON.stringify(bytes)).not.toContain(fresh.slice(4));
  });

  it("is shared by processes: each sees the other's changes, and both may start at once", async () => {
    const path = newPath();
    const tables = [opened(path), opened(path), opened(path)].map((database) => ({
      table: createKeyTable(database, () => now),
      book: openKeyTableBook(database, () => now),
    }));
    await Promise.all(tables.map(({ table }) => table.revision()));
    await Promise.all(
      tables.map(({ book }, i) => book.create(createKey(), { name: `key ${i}`, scopes: ["admin"] })),
    );
    for (const { table } of tables) expect(await table.load()).toHaveLength(3);
  });
});

describe("out-of-vocabulary words", () => {
  const met = (word: string, more: Partial<MetWord> = {}): MetWord => ({
    keyId: "k1",
    team: undefined,
    language: "eng",
    word,
    count: 1,
    firstSeen: now,
    lastSeen: now,
    ...more,
  });

  it("are counted by word, and seen by their key or team alone", async () => {
    const store = createOovStore(opened());
    await store.add([met("zorblax"), met("quuxly", { count: 2, language: "nld" })]);
    await store.add([met("zorblax", { count: 3, firstSeen: now + 1, lastSeen: now + 2 })]);
    await store.add([
      met("teamword", { keyId: "k2", team: "blue" }),
      met("teamword", { keyId: "k3", team: "blue" }),
    ]);
    expect(await store.list({ keyId: "k1", team: undefined }, { limit: 10 })).toEqual([
      { word: "zorblax", language: "eng", count: 4, firstSeen: now, lastSeen: now + 2 },
      { word: "quuxly", language: "nld", count: 2, firstSeen: now, lastSeen: now },
    ]);
    expect(await store.list({ keyId: "k9", team: "blue" }, { limit: 10 })).toMatchObject([
      { word: "teamword", count: 2 },
    ]);
    const dutch = await store.list({ keyId: "k1", team: undefined }, { limit: 10, language: "nld" });
    expect(dutch.map(({ word }) => word)).toEqual(["quuxly"]);
    expect(await store.list({ keyId: "k1", team: undefined }, { limit: 1 })).toHaveLength(1);
  });

  it("are bounded: those met longest ago give way", async () => {
    const store = createOovStore(opened());
    const words = Array.from({ length: 10_003 }, (_, i) => met(`w${i}`, { lastSeen: now + i }));
    await store.add(words);
    const kept = await store.list({ keyId: "k1", team: undefined }, { limit: 20_000 });
    expect(kept).toHaveLength(10_000);
    expect(kept.at(-1)?.word).toBe("w3");
  });
});

describe("a database that is not well says what to do", () => {
  const use = (database: Database) => createKeyTable(database, () => now).revision();

  it("when its folder is not there", async () => {
    const path = join(folder, "nowhere", "a.db");
    await expect(use(opened(path))).rejects.toThrow(`the database ${path} is not there, nor is its folder`);
  });

  it("when it is no database, and is well again once a good one lies there", async () => {
    const path = newPath();
    writeFileSync(path, "This is a letter, not a database. ".repeat(100));
    const database = opened(path);
    await expect(use(database)).rejects.toThrow("is not an SQLite database; put a backup in its place");
    rmSync(path);
    await expect(use(database)).rejects.toThrow("is not there");
    const good = newPath();
    expect(await use(opened(good))).toBe(1);
    for (const one of open.splice(1)) await one.close();
    renameSync(good, path);
    expect(await use(database)).toBe(1);
  });

  it("when it is corrupt", async () => {
    const path = newPath();
    const book = openKeyTableBook(opened(path), () => now);
    for (let i = 0; i < 50; i++) await book.create(createKey(), { ...facts, name: `key ${i}` });
    await open.splice(0)[0]?.close();
    const bytes = Buffer.alloc(statSync(path).size - 4096, 0xa5);
    const { openSync, writeSync, closeSync } = await import("node:fs");
    const file = openSync(path, "r+");
    writeSync(file, bytes, 0, bytes.length, 4096);
    closeSync(file);
    await expect(use(opened(path))).rejects.toThrow("is corrupt; stop the server and put a backup");
  });

  it("when it is taken away while in use, and follows the one that is put back", async () => {
    const path = newPath();
    const database = opened(path);
    await openKeyTableBook(database, () => now).create(createKey(), facts);
    expect(await use(database)).toBe(2);
    renameSync(path, `${path}.away`);
    await expect(use(database)).rejects.toThrow("failed: the file is gone");
    await expect(use(database)).rejects.toThrow("is not there");
    expect(existsSync(path)).toBe(false);
    renameSync(`${path}.away`, path);
    expect(await use(database)).toBe(2);
  });

  it("when another process holds its lock for too long, and goes on when it is free", async () => {
    const path = newPath();
    const database = opened(path);
    const book = openKeyTableBook(database, () => now);
    await use(database);
    const other = new DatabaseSync(path);
    other.exec("begin exclusive");
    await expect(book.create(createKey(), facts)).rejects.toThrow("is locked by another process");
    other.exec("rollback");
    other.close();
    await book.create(createKey(), facts);
  });

  it("when the disk is full", async () => {
    const path = newPath();
    await use(opened(path));
    await open.splice(0)[0]?.close();
    // a limit of pages is what SQLite knows of a full disk, and the only one that needs no disk of its own
    const database = opened(path);
    await database.run(async (db) => {
      const { sql } = await import("kysely");
      await sql`pragma max_page_count = 14`.execute(db);
    });
    const book = openKeyTableBook(database, () => now);
    const fill = async () => {
      for (let i = 0; i < 500; i++) await book.create(createKey(), { ...facts, name: `key ${i}` });
    };
    await expect(fill()).rejects.toThrow("cannot be written as the disk is full; free some space");
    expect(await use(database)).toBeGreaterThan(1); // and what is there is still read
  });

  it("when its user may not write it", async () => {
    const path = newPath();
    await use(opened(path));
    await open.splice(0)[0]?.close();
    for (const name of [path, folder]) chmodSync(name, 0o555);
    try {
      await expect(createAsNobody(path)).resolves.toContain("may not be opened by the server's user");
    } finally {
      chmodSync(folder, 0o755);
    }
  });
});

/** What the command line says where it runs as a user without rights. */
async function createAsNobody(path: string): Promise<string> {
  const { execFile } = await import("node:child_process");
  const main = join(import.meta.dirname, "../../../server/main.ts");
  const command = [process.execPath, main, "keys", "create", "--name", "x", "--database", path];
  const [program = "", ...words] =
    process.getuid?.() === 0
      ? [
          "setpriv",
          "--reuid",
          "65534",
          "--clear-groups",
          "--bounding-set=-all",
          "--inh-caps=-all",
          ...command,
        ]
      : command;
  return new Promise((resolve) => {
    execFile(program, words, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}
