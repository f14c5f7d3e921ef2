/**
 * Tests an outage of PostgreSQL for ten minutes with a thousand out-of-vocabulary words a second, and a
 * longer outage that exceeds the limits.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createOovRecorder, type OovRecorder } from "../../../../server/api/oovs/recorder.ts";
import { openSpool } from "../../../../server/api/oovs/spool.ts";
import { type Database, openDatabase } from "../../../../server/store/database/database.ts";
import type { ApiKey } from "../../../../server/store/keys/key.ts";
import { createOovStore } from "../../../../server/store/oov-store.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";

/** Five keys. Each key has ten words, twenty times a second. */
const keys = Array.from({ length: 5 }, (_, i): ApiKey => {
  return { id: `00000000-0000-4000-8000-00000000000${i}`, name: `app ${i}`, team: "blue", scopes: [] };
});
const words = Array.from({ length: 10 }, (_, i) => `zorblax${i}`);
const everySecond = Array.from({ length: 20 }, () => words).flat();
const wordsASecond = keys.length * everySecond.length;
const clock = new FakeClock();
const startMs = clock.nowMs();
const folder = folderOfTests("outage");

let postgres: TestPostgres;
let database: Database;
let recorder: OovRecorder;
let dropped = 0;
const errors: (string | undefined)[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
  database = openDatabase(await postgres.newDatabase());
  const spool = await openSpool({
    folder,
    onDropped: (count) => {
      dropped += count;
    },
    onError: (error) => errors.push(error?.message),
    onUnreadable: (error) => errors.push(error.message),
  });
  recorder = createOovRecorder({
    waiting: spool,
    store: createOovStore(database),
    keepsSentences: () => false,
    clock,
    writeMs: 60_000,
    onError: () => undefined,
  });
});
afterAll(async () => {
  await recorder.close();
  await database.close();
  await postgres.stop();
});

/** Records the words of each key once a second. */
async function record(seconds: number, wordsOfKey = everySecond): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    for (const key of keys) recorder.note(key, "eng", wordsOfKey, "");
    await clock.advance(1_000);
  }
}

/** Returns the total count of the stored words, and their first and last time in seconds after the start. */
async function storedWords(): Promise<{ count: number; firstSeen: number; lastSeen: number; late: number }> {
  return database.run(async (db) => {
    const rows = await db.selectFrom("oovs").selectAll().execute();
    return {
      count: rows.reduce((sum, { count }) => sum + Number(count), 0),
      firstSeen: (Math.min(...rows.map((row) => Number(row.first_seen))) - startMs) / 1000,
      lastSeen: (Math.max(...rows.map((row) => Number(row.last_seen))) - startMs) / 1000,
      late: rows.filter(({ word }) => word === "late").length,
    };
  });
}

async function untilStored(count: number): Promise<void> {
  await eventually("all words in the database", async () => {
    await clock.advance(60_000);
    return readdirSync(folder).length === 0 && (await storedWords()).count === count;
  });
}

it("an outage of ten minutes loses no word, and words beyond the limit are dropped and counted", async () => {
  await postgres.kill();
  await record(600);
  expect(dropped).toBe(0);
  await eventually("all words on the disk", () => lines() === 600 * wordsASecond);
  await record(300);
  expect(dropped).toBeGreaterThan(0);
  const accepted = 900 * wordsASecond - dropped;
  const before = dropped;
  await record(1, ["late"]);
  expect(dropped).toBe(before + keys.length);
  await postgres.restart();
  await untilStored(accepted);
  expect(await storedWords()).toMatchObject({ firstSeen: 0, late: 0 });
  const { lastSeen } = await storedWords();
  expect(lastSeen, "the words of the first ten minutes are stored").toBeGreaterThanOrEqual(600);
  expect(lastSeen).toBeLessThan(900);
  await record(1, ["late"]);
  await untilStored(accepted + keys.length);
  expect(errors.filter((error) => error !== undefined)).toEqual([]);
});

function lines(): number {
  return readdirSync(folder).reduce((sum, name) => {
    return sum + readFileSync(join(folder, name), "latin1").split("\n").length - 1;
  }, 0);
}
