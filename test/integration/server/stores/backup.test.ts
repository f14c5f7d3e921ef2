import { execFile } from "node:child_process";
import { copyFileSync, existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { backupCommand } from "../../../../server/cli/backup.ts";
import { type Database, openDatabase } from "../../../../server/store/database/database.ts";
import { createKey } from "../../../../server/store/keys/key.ts";
import { createKeyTable, openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { createLexiconTable } from "../../../../server/store/lexicon.ts";
import { createOovStore } from "../../../../server/store/oov-store.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { runInProcess } from "../../../support/server/command-line.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";

const run = promisify(execFile);
const main = fileURLToPath(new URL("../../../../server/main.ts", import.meta.url));
const now = () => Date.now();

const folder = folderOfTests("backup");
let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

/** Runs the backup in a separate process, like the command line. */
function backUpInProcess(database: string, to: string) {
  return run(process.execPath, [main, "backup", "--database", database, "--to", to]);
}

/** Runs a backup that must fail. @returns the error message */
async function backupError(database: string, to: string): Promise<string> {
  const { code, err } = await runInProcess([backupCommand], ["backup", "--database", database, "--to", to]);
  expect(code).toBe(2);
  return err;
}

/** Creates a key and a word of the lexicon. */
async function fill(database: Database): Promise<void> {
  await openKeyTableBook(database, now).create(createKey(), { name: "app", scopes: ["tts:write"] });
  const word = { team: "blue", language: "eng", word: "zorblax", phonemes: "z" };
  await createLexiconTable(database, now).save("ada", word);
}

/** Deletes the key and the word. */
async function empty(database: Database): Promise<void> {
  await openKeyTableBook(database, now).revoke("app");
  await createLexiconTable(database, now).remove("ada", { team: "blue", language: "eng", word: "zorblax" });
}

async function contentOf(database: Database): Promise<{ keys: number; words: string[] }> {
  const keys = await createKeyTable(database, now).load();
  const words = await createLexiconTable(database, now).list("blue");
  return { keys: keys.length, words: words.map(({ word }) => word) };
}

const whole = { keys: 1, words: ["zorblax"] };

describe("a backup", () => {
  it("of SQLite is consistent although other processes write during the backup", async () => {
    const location = join(folder, "svc-tts.db");
    const copy = join(folder, "copy.db");
    const database = openDatabase(location);
    await fill(database);
    const occurrence = { count: 1, firstSeen: now(), lastSeen: now() };
    const store = createOovStore(database);
    let written = 0;
    let isOver = false;
    const writing = (async () => {
      for (; !isOver; written++) {
        await store.add([{ keyId: "k", team: "blue", language: "eng", word: `w${written}`, ...occurrence }]);
      }
    })();
    await backUpInProcess(location, copy);
    const before = written;
    isOver = true;
    await writing;
    expect(before).toBeGreaterThan(0);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(existsSync(`${copy}.part`)).toBe(false);
    await empty(database);
    expect(await contentOf(database)).toEqual({ keys: 0, words: [] });
    await database.close();
    for (const suffix of ["-wal", "-shm"]) rmSync(`${location}${suffix}`, { force: true });
    copyFileSync(copy, location);
    const restored = openDatabase(location);
    expect(await contentOf(restored)).toEqual(whole);
    const restoredWords = await createOovStore(restored).list(
      { keyId: "k", team: "blue" },
      { limit: 100_000 },
    );
    expect(restoredWords.length).toBeLessThanOrEqual(before + 1);
    await restored.close();
  });

  it("of SQLite never overwrites a file, and rejects a missing file, another file and a PostgreSQL database", async () => {
    const location = join(folder, "there.db");
    const database = openDatabase(location);
    await fill(database);
    await database.close();
    writeFileSync(join(folder, "taken"), "something else");
    expect(await backupError(location, join(folder, "taken"))).toContain("already exists");
    expect(await backupError(join(folder, "none.db"), join(folder, "new"))).toContain("does not exist");
    expect(await backupError(join(folder, "taken"), join(folder, "new"))).toContain("was not copied");
    expect(await backupError("postgres://ada:secret@db/tts", join(folder, "new"))).toContain(
      "postgres://db/tts is a PostgreSQL database; back it up with pg_dump",
    );
    expect(existsSync(join(folder, "new"))).toBe(false);
  });

  it("of PostgreSQL can be restored while the database is in use", async () => {
    const location = await postgres.newDatabase();
    const dump = join(folder, "tts.dump");
    const database = openDatabase(location);
    await fill(database);
    await run(join(postgres.programs, "pg_dump"), ["--format", "custom", "--file", dump, location]);
    await empty(database);
    expect(await contentOf(database)).toEqual({ keys: 0, words: [] });
    const words = ["--clean", "--if-exists", "--single-transaction", "--dbname", location, dump];
    await run(join(postgres.programs, "pg_restore"), words);
    expect(await contentOf(database)).toEqual(whole);
    await database.close();
  });
});
