import { expect, it } from "vitest";
import { LruCache } from "../../../lib/lru-cache.ts";

it("the LRU cache drops the least recently used value, and returns it", () => {
  const cache = new LruCache<string, number>(2);
  cache.set("a", 1);
  cache.set("b", 2);
  cache.get("a");
  expect(cache.set("c", 3)).toEqual(["b", 2]);
  expect([cache.has("a"), cache.has("b"), cache.has("c")]).toEqual([true, false, true]);
});

it("the LRU cache counts setting a value as a use of its key, and keeps one value for a key", () => {
  const cache = new LruCache<string, number>(2);
  cache.set("a", 1);
  cache.set("b", 2);
  expect(cache.set("a", 4)).toBeUndefined();
  expect(cache.set("c", 3)).toEqual(["b", 2]);
  expect(cache.get("a")).toBe(4);
  cache.delete("a");
  expect(cache.size).toBe(1);
});
