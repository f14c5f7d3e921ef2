import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../../lib/clock.ts";
import { cacheKeys } from "../../../server/store/keys/cached-keys.ts";
import { digestKey } from "../../../server/store/keys/key.ts";
import type { KeyEntry } from "../../../server/store/keys/key-store.ts";
import type { KeyTable } from "../../../server/store/keys/key-table.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const digest = digestKey("a key");
const entry: KeyEntry = { id: "1", name: "app", scopes: ["tts:write"], sha256: digest };

class TestTable implements KeyTable {
  keys: readonly KeyEntry[] = [entry];
  number = 1;
  loads = 0;
  failure: Error | undefined;
  isReadOnly = false;
  readonly written: ReadonlyMap<string, number>[] = [];

  async revision() {
    if (this.failure) throw this.failure;
    return this.number;
  }
  async load() {
    this.loads++;
    return this.keys;
  }
  async used(times: ReadonlyMap<string, number>) {
    if (this.isReadOnly) throw new Error("read-only");
    if (this.failure) throw this.failure;
    this.written.push(times);
  }
}

async function follow(table: TestTable, staleMs = 60_000) {
  const troubles: (string | undefined)[] = [];
  const unwritten: (string | undefined)[] = [];
  const keys = cacheKeys({
    table,
    staleMs,
    clock: systemClock,
    onError: (error) => troubles.push(error?.message),
    onUnwritten: (error) => unwritten.push(error?.message),
  });
  await keys.start();
  return { keys, troubles, unwritten };
}

test("cacheKeys drops a revoked key within five seconds, and does not read an unchanged table again", async () => {
  const table = new TestTable();
  const { keys } = await follow(table);
  expect(await keys.find(digest)).toMatchObject({ name: "app" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(table.loads).toBe(1);
  table.keys = [];
  table.number = 2;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await keys.find(digest)).toBeUndefined();
  expect(table.loads).toBe(2);
});

test("cacheKeys reports once that times of use cannot be written, separately from unreadable keys", async () => {
  const table = new TestTable();
  const { keys, troubles, unwritten } = await follow(table);
  table.isReadOnly = true;
  await keys.find(digest);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([troubles, unwritten]).toEqual([[], ["read-only"]]);
  table.isReadOnly = false;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(unwritten).toEqual(["read-only", undefined]);
  expect(table.written).toHaveLength(1);
});

test("cacheKeys keeps keys for the configured time if the table cannot be read, and reports this once", async () => {
  const table = new TestTable();
  const { keys, troubles } = await follow(table);
  table.failure = new Error("the database is corrupt");
  await vi.advanceTimersByTimeAsync(55_000);
  expect(await keys.find(digest)).toMatchObject({ name: "app" });
  await vi.advanceTimersByTimeAsync(10_000);
  await expect(keys.find(digest)).rejects.toMatchObject({ code: "store_unavailable", status: 503 });
  expect(troubles).toEqual(["the database is corrupt"]);
  table.failure = undefined;
  table.keys = [];
  await vi.advanceTimersByTimeAsync(2_000);
  // The table was read again, although its revision is the same.
  expect(await keys.find(digest)).toBeUndefined();
  expect(troubles).toEqual(["the database is corrupt", undefined]);
});

test("cacheKeys starts if the table cannot be read, and reads it later", async () => {
  const table = new TestTable();
  table.failure = new Error("gone");
  const { keys } = await follow(table);
  await expect(keys.find(digest)).rejects.toMatchObject({ code: "store_unavailable" });
  expect(keys.isRead()).toBe(false);
  table.failure = undefined;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await keys.find(digest)).toMatchObject({ name: "app" });
  table.failure = new Error("gone again");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(keys.isRead()).toBe(true);
});

test("cacheKeys writes times of use in batches, at most once a minute for each key, and again after a failure", async () => {
  const table = new TestTable();
  const { keys } = await follow(table);
  const start = Date.now();
  for (let i = 0; i < 100; i++) await keys.find(digest);
  expect(table.written).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_000);
  await keys.find(digest);
  await vi.advanceTimersByTimeAsync(10_000);
  const hex = digest.toString("hex");
  expect(table.written).toEqual([new Map([[hex, start]])]);
  await vi.advanceTimersByTimeAsync(60_000);
  table.failure = new Error("locked");
  await keys.find(digest);
  const second = Date.now();
  await vi.advanceTimersByTimeAsync(10_000);
  table.failure = undefined;
  await keys.close();
  expect(table.written).toEqual([new Map([[hex, start]]), new Map([[hex, second]])]);
});
