import { expect, test } from "vitest";
import { FairQueue } from "../../../server/model/fair-queue.ts";

function filled(limit: number, keys: string): FairQueue<string> {
  const queue = new FairQueue<string>(() => limit);
  for (const [i, key] of [...keys].entries()) queue.add(key, `${key}${i}`);
  return queue;
}

function drained(queue: FairQueue<string>): string {
  const names: string[] = [];
  for (let next = queue.next(); next !== undefined; next = queue.next()) names.push(next);
  return names.join(" ");
}

test("the fair queue serves API keys in turn, and the requests of a key in their order", () => {
  expect(drained(filled(20, "aaaabbc"))).toBe("a0 b4 c6 a1 b5 a2 a3");
  expect(drained(filled(20, "abab"))).toBe("a0 b1 a2 b3");
});

test("the fair queue serves other API keys before a key that was just served", () => {
  const queue = filled(20, "aab");
  expect(queue.next()).toBe("a0");
  queue.add("c", "c9");
  expect(drained(queue)).toBe("b2 a1 c9");
});

test("a full fair queue drops the latest request of the key with the most requests for a key with fewer", () => {
  const queue = filled(5, "aaaab");
  expect(queue.add("c", "c5")).toEqual({ waits: true, turnedAway: "a3" });
  expect(queue.add("c", "c6")).toEqual({ waits: true, turnedAway: "a2" } satisfies object);
  expect(queue.length).toBe(5);
  expect(drained(queue)).toBe("a0 b4 c5 a1 c6");
});

test("a full fair queue rejects a request of a key that has as many requests as the other keys", () => {
  const queue = filled(4, "aabb");
  expect(queue.add("a", "a9")).toEqual({ waits: false });
  expect(queue.add("b", "b9")).toEqual({ waits: false });
  expect(drained(queue)).toBe("a0 b2 a1 b3");
  expect(new FairQueue<string>(() => 0).add("a", "a0")).toEqual({ waits: false });
});

test("the fair queue does not serve a cancelled request", () => {
  const queue = filled(9, "aab");
  queue.remove("b", "b2");
  queue.remove("b", "b2");
  queue.remove("a", "a0");
  expect(queue.length).toBe(1);
  expect(queue.ahead("b")).toBe(1);
  expect(drained(queue)).toBe("a1");
});

test("the fair queue counts the requests that are served before the next request of a key", () => {
  const queue = filled(200, `${"a".repeat(100)}bb`);
  expect(queue.ahead("c")).toBe(2);
  expect(queue.ahead("b")).toBe(2 + 3);
  expect(queue.ahead("a")).toBe(102);
});

test("a queue whose limit was lowered stays fair and does not grow", () => {
  let limit = 4;
  const queue = new FairQueue<string>(() => limit);
  for (const name of ["a0", "a1", "a2", "a3"]) queue.add("a", name);
  limit = 2;
  expect(queue.add("b", "b4")).toEqual({ waits: true, turnedAway: "a3" });
  expect(queue.add("a", "a5")).toEqual({ waits: false });
  expect(queue.length).toBe(4);
  expect(drained(queue)).toBe("a0 b4 a1 a2");
});
