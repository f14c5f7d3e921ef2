import { execFile } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../../server/store/database/database.ts";
import { createKey, type KeyFacts } from "../../../server/store/keys/key.ts";
import { createKeyTable, openKeyTableBook } from "../../../server/store/keys/key-table.ts";
import { postgresBackend } from "../../../server/store/postgres/backend.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("database");
let files = 0;
const open: Database[] = [];

afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});

const newPath = () => join(folder, `${files++}.db`);

function openTestDatabase(path = newPath()): Database {
  const database = openDatabase(path);
  open.push(database);
  return database;
}

const now = Date.UTC(2030, 0, 1);
const facts: KeyFacts = { name: "app", scopes: ["tts:write"], limits: { streams: 3 }, team: "blue" };

describe("a database error has a message with a remedy", () => {
  const use = (database: Database) => createKeyTable(database, () => now).revision();

  it("if the folder of the database does not exist", async () => {
    const path = join(folder, "nowhere", "a.db");
    await expect(use(openTestDatabase(path))).rejects.toThrow(
      `the database ${path} is missing, or its folder is missing`,
    );
  });

  it("if the file is not a database, and the next use succeeds after a valid file replaces it", async () => {
    const path = newPath();
    writeFileSync(path, "This is a letter, not a database. ".repeat(100));
    const database = openTestDatabase(path);
    await expect(use(database)).rejects.toThrow("is not an SQLite database; restore a backup");
    rmSync(path);
    await expect(use(database)).rejects.toThrow("is missing");
    const good = newPath();
    expect(await use(openTestDatabase(good))).toBe(1);
    for (const one of open.splice(1)) await one.close();
    renameSync(good, path);
    expect(await use(database)).toBe(1);
  });

  it("if the database is corrupt", async () => {
    const path = newPath();
    const book = openKeyTableBook(openTestDatabase(path), () => now);
    for (let i = 0; i < 50; i++) await book.create(createKey(), { ...facts, name: `key ${i}` });
    await open.splice(0)[0]?.close();
    const bytes = Buffer.alloc(statSync(path).size - 4096, 0xa5);
    const file = openSync(path, "r+");
    writeSync(file, bytes, 0, bytes.length, 4096);
    closeSync(file);
    await expect(use(openTestDatabase(path))).rejects.toThrow(
      "is corrupt; stop the server and restore a backup",
    );
  });

  it("if the file is deleted in use, and the next use succeeds after the file is restored", async () => {
    const path = newPath();
    const database = openTestDatabase(path);
    await openKeyTableBook(database, () => now).create(createKey(), facts);
    expect(await use(database)).toBe(2);
    renameSync(path, `${path}.away`);
    await expect(use(database)).rejects.toThrow("failed: the file was deleted");
    await expect(use(database)).rejects.toThrow("is missing");
    expect(existsSync(path)).toBe(false);
    renameSync(`${path}.away`, path);
    expect(await use(database)).toBe(2);
  });

  it("if another process holds the lock for too long, and the next use succeeds after the lock is free", async () => {
    const path = newPath();
    const database = openTestDatabase(path);
    const book = openKeyTableBook(database, () => now);
    await use(database);
    const other = new DatabaseSync(path);
    other.exec("begin exclusive");
    await expect(book.create(createKey(), facts)).rejects.toThrow("is locked by another process");
    other.exec("rollback");
    other.close();
    await book.create(createKey(), facts);
  });

  it("if the disk is full", async () => {
    const path = newPath();
    await use(openTestDatabase(path));
    await open.splice(0)[0]?.close();
    // With a page limit, SQLite reports a full disk.
    const database = openTestDatabase(path);
    await database.run((db) => sql`pragma max_page_count = 14`.execute(db));
    const book = openKeyTableBook(database, () => now);
    const fill = async () => {
      for (let i = 0; i < 500; i++) await book.create(createKey(), { ...facts, name: `key ${i}` });
    };
    await expect(fill()).rejects.toThrow("cannot be written because the disk is full; free some space");
    expect(await use(database)).toBeGreaterThan(1); // Existing rows can still be read.
  });

  it("if the user of the server may not write the file", async () => {
    const path = newPath();
    await use(openTestDatabase(path));
    await open.splice(0)[0]?.close();
    for (const name of [path, folder]) chmodSync(name, 0o555);
    onTestFinished(() => chmodSync(folder, 0o755));
    await expect(createWithoutRights(path)).resolves.toContain("cannot be opened by the server's user");
  });
});

/** Creates a key with the command line as a user without permissions, and returns the output. */
function createWithoutRights(path: string): Promise<string> {
  const main = join(import.meta.dirname, "../../../server/main.ts");
  const command = [process.execPath, main, "keys", "create", "--name", "x", "--database", path];
  const withoutRights = ["--reuid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];
  const [program = "", ...words] =
    process.getuid?.() === 0 ? ["setpriv", ...withoutRights, ...command] : command;
  return new Promise((resolve) => {
    execFile(program, words, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

describe("a PostgreSQL database", () => {
  it.each(["postgres://me:secret@db.example/tts", "postgresql://db.example:6432/tts?application_name=x"])(
    "is refused without an explicit sslmode: %s",
    (url) => {
      const open = () => postgresBackend(url);
      expect(open).toThrow(
        "the URL of the database does not state whether TLS is used; add ?sslmode=verify-full, or ?sslmode=disable",
      );
      expect(open).not.toThrow("secret");
    },
  );

  it.each([
    "postgres://db.example/tts?sslmode=disable",
    "postgres://db.example/tts?sslmode=verify-full",
    "postgres://127.0.0.1:6432/tts",
    "postgres://localhost/tts",
    "postgres://[::1]/tts",
    "postgres:///tts?host=/run/postgresql",
  ])("is accepted at %s", (url) => {
    expect(() => postgresBackend(url)).not.toThrow();
  });
});
