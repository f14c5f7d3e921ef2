import { describe, expect, test } from "vitest";
import type { ReconcileOutcome } from "../../../operator/facts/outcome.ts";
import { type QueueOptions, type Reconcile, WorkQueue } from "../../../operator/serve/work-queue.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

const settled: ReconcileOutcome = { kind: "settled" };

/** A queue whose reconciles end when the test ends them. */
function handHeld(options: Partial<QueueOptions> = {}) {
  const clock = new FakeClock();
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<ReconcileOutcome>>();
  const pass: Reconcile = (key) => {
    begun.push(key);
    const end = Promise.withResolvers<ReconcileOutcome>();
    ends.set(key, end);
    return end.promise;
  };
  const queue = new WorkQueue({ pass, workers: 1, clock, random: () => 0.5, ...options });
  const end = async (key: string, outcome: ReconcileOutcome | Error = settled) => {
    if (outcome instanceof Error) ends.get(key)?.reject(outcome);
    else ends.get(key)?.resolve(outcome);
    await settle();
  };
  return { clock, queue, begun, end };
}

/** A running queue, with a reconcile of key `a` in progress. */
async function running(options: Partial<QueueOptions> = {}) {
  const held = handHeld(options);
  held.queue.start();
  held.queue.add("a");
  await settle();
  return held;
}

describe("a queue of keys", () => {
  test("a failed key keeps its backoff when the change cannot have removed the cause", async () => {
    const { clock, queue, begun, end } = await running({ backoff: { baseMs: 1000, capMs: 1000, jitter: 0 } });
    await end("a", new Error("refused"));
    queue.addUnlessFailed("a");
    await settle();
    expect(begun).toEqual(["a"]);
    await clock.advance(1000);
    expect(begun).toEqual(["a", "a"]);
    queue.addUnlessFailed("a");
    await end("a", new Error("refused again"));
    expect(begun).toHaveLength(2);
    await clock.advance(1000);
    queue.addUnlessFailed("a");
    await end("a");
    expect(begun, "a change beside a pass that succeeds is not lost").toHaveLength(4);
  });

  test("a stalled key is reconciled at the time that its outcome names", async () => {
    const { clock, begun, end } = await running();
    await end("a", { kind: "stalled", reason: "podTemplate", afterMs: 5000 });
    await clock.advance(4999);
    expect(begun).toEqual(["a"]);
    await clock.advance(1);
    expect(begun).toEqual(["a", "a"]);
  });

  test("reconciles a key once, however often it was added while it waited", async () => {
    const { queue, begun, end } = handHeld();
    for (const key of ["a", "b", "b", "b"]) queue.add(key);
    queue.start();
    await settle();
    await end("a");
    await end("b");
    expect(begun).toEqual(["a", "b"]);
  });

  test("never reconciles a key twice at the same time, and reconciles it again if it was added meanwhile", async () => {
    const { queue, begun, end } = await running({ workers: 4 });
    queue.add("a");
    queue.add("a");
    await settle();
    expect(begun).toEqual(["a"]);
    await end("a");
    expect(begun).toEqual(["a", "a"]);
    await end("a");
    expect(begun).toHaveLength(2);
  });

  const group = (key: string) => ({ group: key.charAt(0), alone: !key.endsWith("p") });

  test("runs an exclusive key alone in its group, and other groups meanwhile", async () => {
    const { queue, begun, end } = handHeld({ workers: 3, turnOf: group });
    queue.start();
    for (const key of ["a1", "a2", "ap", "b1"]) queue.add(key);
    queue.add("c1", "resync");
    await settle();
    expect(begun).toEqual(["a1", "b1", "c1"]);
    await end("a1");
    expect(begun).toEqual(["a1", "b1", "c1", "a2"]);
  });

  test("runs non-exclusive keys of a group concurrently, and none ahead of a waiting exclusive key", async () => {
    const { queue, begun, end } = handHeld({ workers: 9, turnOf: group });
    queue.start();
    for (const key of ["a1p", "a2p", "a", "a3p"]) queue.add(key);
    await settle();
    expect(begun).toEqual(["a1p", "a2p"]);
    await end("a1p");
    expect(begun).toEqual(["a1p", "a2p"]);
    await end("a2p");
    expect(begun).toEqual(["a1p", "a2p", "a"]);
    await end("a");
    expect(begun).toEqual(["a1p", "a2p", "a", "a3p"]);
  });

  test("runs non-exclusive keys of the group next to a key that is no longer exclusive", async () => {
    const begun: string[] = [];
    const shares: (() => void)[] = [];
    const pass: Reconcile = (key, _signal, share) => {
      begun.push(key);
      shares.push(share);
      return new Promise(() => undefined);
    };
    const queue = new WorkQueue({ pass, workers: 9, clock: new FakeClock(), turnOf: group });
    queue.start();
    for (const key of ["a1", "ap", "a2"]) queue.add(key);
    await settle();
    expect(begun).toEqual(["a1"]);
    shares[0]?.();
    await settle();
    expect(begun).toEqual(["a1", "ap"]);
  });

  test("runs as many reconciles at the same time as it has workers", async () => {
    const { queue, begun, end } = handHeld({ workers: 2 });
    queue.start();
    for (const key of ["a", "b", "c"]) queue.add(key);
    await settle();
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "c"]);
  });

  test("prefers a change to every resync", async () => {
    const { queue, begun, end } = handHeld();
    for (const key of ["a", "b", "c"]) queue.add(key, "resync");
    queue.add("new");
    queue.add("b");
    queue.start();
    for (const key of ["new", "b", "a", "c"]) {
      await settle();
      await end(key);
    }
    expect(begun).toEqual(["new", "b", "a", "c"]);
  });

  test("reaches an old resync however many changes there are", async () => {
    const clock = new FakeClock();
    const { queue, begun, end } = handHeld({ clock });
    queue.start();
    queue.add("change-0");
    await settle();
    queue.add("timer", "resync");
    await clock.advance(1_000);
    for (let turn = 0; turn < 4; turn += 1) {
      queue.add(`change-${turn + 1}`);
      await end(`change-${turn}`);
      if (begun.includes("timer")) break;
    }
    expect(begun).toEqual(["change-0", "change-1", "change-2", "timer"]);
  });

  test("keeps the priority of a change when a resync is added, also during the reconcile", async () => {
    const { queue, begun, end } = handHeld();
    queue.start();
    queue.add("running");
    await settle();
    queue.add("other", "resync");
    queue.add("running");
    queue.add("running", "resync");
    await end("running");
    expect(begun).toEqual(["running", "running"]);
  });

  test("does not run a reconcile synchronously when a key is added", () => {
    const { queue, begun } = handHeld();
    queue.start();
    queue.add("a");
    expect(begun).toEqual([]);
  });
});

describe("a failed reconcile", () => {
  test("is retried after delays that double from 5 ms to 5 minutes", async () => {
    const retries: number[] = [];
    const clock = new FakeClock();
    const queue = new WorkQueue({
      pass: () => Promise.reject(new Error("no")),
      workers: 1,
      clock,
      random: () => 0.5,
      observer: { failed: (_key, _error, _failures, retryMs) => retries.push(retryMs) },
    });
    queue.start();
    queue.add("a");
    await clock.advance(30 * 60_000);
    expect(retries.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(retries.at(-1)).toBe(300_000);
    expect(Math.max(...retries)).toBe(300_000);
  });

  test("has random delays, so that keys which failed together are not retried together", async () => {
    const retries: number[] = [];
    let turn = 0;
    const clock = new FakeClock();
    const queue = new WorkQueue({
      pass: () => Promise.reject(new Error("no")),
      workers: 2,
      clock,
      random: () => [0, 0.999][turn++ % 2] ?? 0,
      observer: { failed: (_key, _error, _failures, retryMs) => retries.push(retryMs) },
    });
    queue.start();
    queue.add("a");
    queue.add("b");
    await settle();
    expect(new Set(retries).size).toBe(2);
  });

  test("has a delay of 5 ms again after a success", async () => {
    const retries: number[] = [];
    const { clock, queue, end } = handHeld({
      observer: { failed: (_key, _error, _failures, retryMs) => retries.push(retryMs) },
    });
    queue.start();
    queue.add("a");
    for (const outcome of [new Error("1"), new Error("2"), settled, new Error("3")]) {
      await clock.advance(100);
      await end("a", outcome);
      if (outcome === settled) queue.add("a");
    }
    expect(retries).toEqual([5, 10, 5]);
  });

  test("does not delay a change of the same key", async () => {
    const { clock, queue, begun, end } = await running({
      backoff: { baseMs: 60_000, capMs: 60_000, jitter: 0 },
    });
    await end("a", new Error("no"));
    await clock.advance(10);
    expect(begun).toHaveLength(1);
    queue.add("a");
    await settle();
    expect(begun).toHaveLength(2);
  });

  test("does not delay other keys", async () => {
    const { queue, begun, end } = await running();
    await end("a", new Error("no"));
    queue.add("b");
    await settle();
    expect(begun).toEqual(["a", "b"]);
  });
});

describe("a timer", () => {
  test("adds the key after the requested time, and is removed when the key is settled", async () => {
    const { clock, begun, end } = await running();
    await end("a", { kind: "waiting", afterMs: 2_000, reason: "a pod starts" });
    await clock.advance(1_999);
    expect(begun).toHaveLength(1);
    await clock.advance(1);
    expect(begun).toHaveLength(2);
    await end("a");
    expect(clock.timers).toBe(0);
  });

  test("is not set for a stalled key", async () => {
    const { clock, end } = await running();
    await end("a", { kind: "stalled", reason: "the license is missing" });
    expect(clock.timers).toBe(0);
  });

  test("fires once, at the earliest requested time", async () => {
    const { clock, queue, begun, end } = handHeld();
    queue.start();
    queue.addAfter("a", 500);
    queue.addAfter("a", 100);
    queue.addAfter("a", 900);
    await clock.advance(100);
    expect(begun).toEqual(["a"]);
    await end("a");
    await clock.advance(10_000);
    expect(begun).toEqual(["a"]);
  });

  test("is removed with a forgotten key", async () => {
    const { clock, queue, begun } = handHeld();
    queue.start();
    queue.addAfter("a", 100);
    queue.forget("a");
    await clock.advance(1_000);
    expect(begun).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});

describe("a stop", () => {
  test("waits for running reconciles and starts no other", async () => {
    const { clock, queue, begun, end } = handHeld();
    queue.start();
    queue.add("a");
    queue.add("b");
    queue.addAfter("c", 10);
    await settle();
    let stopped = false;
    const stop = queue.stop().then(() => {
      stopped = true;
    });
    await clock.advance(100);
    expect(stopped).toBe(false);
    await end("a");
    await stop;
    queue.add("d");
    await clock.advance(1_000);
    expect(begun).toEqual(["a"]);
    expect(clock.timers).toBe(0);
  });

  test("aborts the signal of a reconcile when the grace period is over", async () => {
    const clock = new FakeClock();
    const queue = new WorkQueue({
      pass: (_key, signal) =>
        new Promise((resolve) => signal.addEventListener("abort", () => resolve(settled), { once: true })),
      workers: 1,
      clock,
    });
    queue.start();
    queue.add("a");
    await settle();
    let stopped = false;
    const stop = queue.stop(5_000).then(() => {
      stopped = true;
    });
    await clock.advance(4_999);
    expect(stopped).toBe(false);
    await clock.advance(1);
    await stop;
    expect(stopped).toBe(true);
  });
});

describe("the observer", () => {
  test("receives the depth, the waiting times, and the result of each reconcile", async () => {
    const seen: unknown[] = [];
    const { clock, queue, end } = handHeld({
      observer: {
        added: (priority) => seen.push(["added", priority]),
        started: (key, waitedMs) => seen.push(["started", key, waitedMs]),
        finished: (key, result, tookMs) => seen.push(["finished", key, result, tookMs]),
      },
    });
    queue.add("a");
    await clock.advance(30);
    queue.start();
    await clock.advance(12);
    await end("a", new Error("no"));
    expect(seen).toEqual([
      ["added", "change"],
      ["started", "a", 30],
      ["finished", "a", "failed", 12],
    ]);
  });
});
