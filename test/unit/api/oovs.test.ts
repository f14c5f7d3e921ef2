import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../../lib/clock.ts";
import { waitInMemory } from "../../../server/api/oovs/memory.ts";
import { createOovRecorder } from "../../../server/api/oovs/recorder.ts";
import type { ApiKey } from "../../../server/store/keys/key.ts";
import type { ObservedOov, OovStore } from "../../../server/store/oov-store.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const key: ApiKey = { id: "k", name: "app", team: "blue", scopes: ["tts:write"] };

class TestStore implements OovStore {
  readonly batches: (readonly ObservedOov[])[] = [];
  failure: Error | undefined;
  onAdd: () => void = () => undefined;

  async add(words: readonly ObservedOov[]) {
    if (this.failure) throw this.failure;
    this.batches.push(words);
    this.onAdd();
  }
  async list() {
    return [];
  }
}

function record(store: OovStore, maxWaiting = 10) {
  const troubles: (string | undefined)[] = [];
  let dropped = 0;
  const recorder = createOovRecorder({
    store,
    waiting: waitInMemory({
      maxWaiting,
      onDropped: (words) => {
        dropped += words;
      },
    }),
    keepsSentences: (team) => team === "storing",
    clock: systemClock,
    onError: (error) => troubles.push(error?.message),
  });
  return { recorder, troubles, dropped: () => dropped };
}

test("an OOV recorder writes words in batches, each word once with its number of occurrences", async () => {
  const store = new TestStore();
  const { recorder } = record(store);
  const first = Date.now();
  recorder.note(key, "eng", ["zorblax", "quux"], "Such zorblax.");
  await vi.advanceTimersByTimeAsync(1_000);
  recorder.note(key, "eng", ["zorblax"], "Such zorblax.");
  recorder.note(key, "nld", ["zorblax"], "Such zorblax.");
  expect(store.batches).toEqual([]);
  await vi.advanceTimersByTimeAsync(5_000);
  const common = { keyId: "k", team: "blue", language: "eng", firstSeen: first };
  expect(store.batches).toEqual([
    [
      { ...common, word: "zorblax", count: 2, lastSeen: first + 1_000 },
      { ...common, word: "quux", count: 1, lastSeen: first },
      expect.objectContaining({ word: "zorblax", language: "nld", count: 1 }),
    ],
  ]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(store.batches).toHaveLength(1);
});

test("an OOV recorder writes words that arrive during a write with the next batch, also when it closes", async () => {
  const store = new TestStore();
  const { recorder } = record(store);
  store.onAdd = () => {
    if (store.batches.length < 50) recorder.note(key, "eng", ["zorblax"], "Such zorblax.");
  };
  recorder.note(key, "eng", ["zorblax"], "Such zorblax.");
  await vi.advanceTimersByTimeAsync(15_000);
  expect(store.batches).toHaveLength(3);
  await recorder.close();
  expect(store.batches).toHaveLength(4);
});

test("an OOV recorder keeps words after a failed write up to a limit, and counts the dropped ones", async () => {
  const store = new TestStore();
  const { recorder, troubles, dropped } = record(store, 3);
  store.failure = new Error("the disk is full");
  recorder.note(key, "eng", ["a", "b"], "Such zorblax.");
  await vi.advanceTimersByTimeAsync(20_000);
  recorder.note(key, "eng", ["a", "c", "d", "e"], "Such zorblax.");
  await vi.advanceTimersByTimeAsync(20_000);
  expect(dropped()).toBe(2);
  expect(troubles).toEqual(["the disk is full"]);
  store.failure = undefined;
  await recorder.close();
  expect(store.batches.flat().map(({ word, count }) => `${word} ${count}`)).toEqual(["a 2", "b 1", "c 1"]);
  expect(troubles).toEqual(["the disk is full", undefined]);
});

test("an OOV recorder writes the sentence around a word only for a team that stores sentences", async () => {
  const store = new TestStore();
  const { recorder } = record(store);
  const text = "First. A zorblax is such, and zorblaxes are not. Last.";
  recorder.note(key, "eng", ["zorblax"], text);
  recorder.note({ ...key, id: "other", team: "storing" }, "eng", ["zorblax"], text);
  await recorder.close();
  expect(store.batches.flat().map(({ keyId, sentence }) => [keyId, sentence])).toEqual([
    ["k", undefined],
    ["other", "A zorblax is such, and zorblaxes are not."],
  ]);
});
