import { describe, expect, test } from "vitest";
import type { ReconcileOutcome } from "../../../operator/facts/outcome.ts";
import { type QueueOptions, type Reconcile, WorkQueue } from "../../../operator/serve/work-queue.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

const settled: ReconcileOutcome = { kind: "settled" };

/** Returns a queue whose reconciles end when the test ends them. */
function controlledQueue(options: Partial<QueueOptions> = {}) {
  const clock = new FakeClock();
  const started: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<ReconcileOutcome>>();
  const pass: Reconcile = (key) => {
    started.push(key);
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
  return { clock, queue, started, end };
}

/** Returns a started queue that is reconciling key `a`. */
async function running(options: Partial<QueueOptions> = {}) {
  const controlled = controlledQueue(options);
  controlled.queue.start();
  controlled.queue.add("a");
  await settle();
  return controlled;
}

describe("a work queue", () => {
  test("keeps the backoff of a failed key that addUnlessFailed adds", async () => {
    const { clock, queue, started, end } = await running({
      backoff: { baseMs: 1000, capMs: 1000, jitter: 0 },
    });
    await end("a", new Error("refused"));
    queue.addUnlessFailed("a");
    await settle();
    expect(started).toEqual(["a"]);
    await clock.advance(1000);
    expect(started).toEqual(["a", "a"]);
    queue.addUnlessFailed("a");
    await end("a", new Error("refused again"));
    expect(started).toHaveLength(2);
    await clock.advance(1000);
    queue.addUnlessFailed("a");
    await end("a");
    expect(started, "a change during a successful reconcile is not lost").toHaveLength(4);
  });

  test("reconciles a stalled key again after the time in its outcome", async () => {
    const { clock, started, end } = await running();
    await end("a", { kind: "stalled", reason: "podTemplate", afterMs: 5000 });
    await clock.advance(4999);
    expect(started).toEqual(["a"]);
    await clock.advance(1);
    expect(started).toEqual(["a", "a"]);
  });

  test("reconciles a key once if it was added several times while it waited", async () => {
    const { queue, started, end } = controlledQueue();
    for (const key of ["a", "b", "b", "b"]) queue.add(key);
    queue.start();
    await settle();
    await end("a");
    await end("b");
    expect(started).toEqual(["a", "b"]);
  });

  test("reconciles a key again after its reconcile if the key was added meanwhile", async () => {
    const { queue, started, end } = await running({ workers: 4 });
    queue.add("a");
    queue.add("a");
    await settle();
    expect(started).toEqual(["a"]);
    await end("a");
    expect(started).toEqual(["a", "a"]);
    await end("a");
    expect(started).toHaveLength(2);
  });

  const group = (key: string) => ({ group: key.charAt(0), alone: !key.endsWith("p") });

  test("runs an exclusive key alone in its group, and keys of other groups concurrently", async () => {
    const { queue, started, end } = controlledQueue({ workers: 3, turnOf: group });
    queue.start();
    for (const key of ["a1", "a2", "ap", "b1"]) queue.add(key);
    queue.add("c1", "resync");
    await settle();
    expect(started).toEqual(["a1", "b1", "c1"]);
    await end("a1");
    expect(started).toEqual(["a1", "b1", "c1", "a2"]);
  });

  test("runs non-exclusive keys of a group concurrently, but not before a waiting exclusive key", async () => {
    const { queue, started, end } = controlledQueue({ workers: 9, turnOf: group });
    queue.start();
    for (const key of ["a1p", "a2p", "a", "a3p"]) queue.add(key);
    await settle();
    expect(started).toEqual(["a1p", "a2p"]);
    await end("a1p");
    expect(started).toEqual(["a1p", "a2p"]);
    await end("a2p");
    expect(started).toEqual(["a1p", "a2p", "a"]);
    await end("a");
    expect(started).toEqual(["a1p", "a2p", "a", "a3p"]);
  });

  test("runs non-exclusive keys of a group after the exclusive key shares its turn", async () => {
    const started: string[] = [];
    const shares: (() => void)[] = [];
    const pass: Reconcile = (key, _signal, share) => {
      started.push(key);
      shares.push(share);
      return new Promise(() => undefined);
    };
    const queue = new WorkQueue({ pass, workers: 9, clock: new FakeClock(), turnOf: group });
    queue.start();
    for (const key of ["a1", "ap", "a2"]) queue.add(key);
    await settle();
    expect(started).toEqual(["a1"]);
    shares[0]?.();
    await settle();
    expect(started).toEqual(["a1", "ap"]);
  });

  test("runs one reconcile per worker concurrently", async () => {
    const { queue, started, end } = controlledQueue({ workers: 2 });
    queue.start();
    for (const key of ["a", "b", "c"]) queue.add(key);
    await settle();
    expect(started).toEqual(["a", "b"]);
    await end("b");
    expect(started).toEqual(["a", "b", "c"]);
  });

  test("runs changes before resyncs", async () => {
    const { queue, started, end } = controlledQueue();
    for (const key of ["a", "b", "c"]) queue.add(key, "resync");
    queue.add("new");
    queue.add("b");
    queue.start();
    for (const key of ["new", "b", "a", "c"]) {
      await settle();
      await end(key);
    }
    expect(started).toEqual(["new", "b", "a", "c"]);
  });

  test("runs an old resync before newer changes", async () => {
    const clock = new FakeClock();
    const { queue, started, end } = controlledQueue({ clock });
    queue.start();
    queue.add("change-0");
    await settle();
    queue.add("timer", "resync");
    await clock.advance(1_000);
    for (let turn = 0; turn < 4; turn += 1) {
      queue.add(`change-${turn + 1}`);
      await end(`change-${turn}`);
      if (started.includes("timer")) break;
    }
    expect(started).toEqual(["change-0", "change-1", "change-2", "timer"]);
  });

  test("keeps the priority of a change when a resync of the same key is added", async () => {
    const { queue, started, end } = controlledQueue();
    queue.start();
    queue.add("running");
    await settle();
    queue.add("other", "resync");
    queue.add("running");
    queue.add("running", "resync");
    await end("running");
    expect(started).toEqual(["running", "running"]);
  });

  test("does not start a reconcile synchronously when a key is added", () => {
    const { queue, started } = controlledQueue();
    queue.start();
    queue.add("a");
    expect(started).toEqual([]);
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

  test("is retried after a random delay, so that keys that failed together are not retried together", async () => {
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

  test("is retried after 5 ms again if a success was in between", async () => {
    const retries: number[] = [];
    const { clock, queue, end } = controlledQueue({
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

  test("does not delay a later change of the same key", async () => {
    const { clock, queue, started, end } = await running({
      backoff: { baseMs: 60_000, capMs: 60_000, jitter: 0 },
    });
    await end("a", new Error("no"));
    await clock.advance(10);
    expect(started).toHaveLength(1);
    queue.add("a");
    await settle();
    expect(started).toHaveLength(2);
  });

  test("does not delay other keys", async () => {
    const { queue, started, end } = await running();
    await end("a", new Error("no"));
    queue.add("b");
    await settle();
    expect(started).toEqual(["a", "b"]);
  });
});

describe("a timer of a work queue", () => {
  test("adds the key after the time in its outcome, and is removed when the key is settled", async () => {
    const { clock, started, end } = await running();
    await end("a", { kind: "waiting", afterMs: 2_000, reason: "a pod starts" });
    await clock.advance(1_999);
    expect(started).toHaveLength(1);
    await clock.advance(1);
    expect(started).toHaveLength(2);
    await end("a");
    expect(clock.timers).toBe(0);
  });

  test("is not set for a stalled key without a time", async () => {
    const { clock, end } = await running();
    await end("a", { kind: "stalled", reason: "the license is missing" });
    expect(clock.timers).toBe(0);
  });

  test("fires once, at the earliest requested time", async () => {
    const { clock, queue, started, end } = controlledQueue();
    queue.start();
    queue.addAfter("a", 500);
    queue.addAfter("a", 100);
    queue.addAfter("a", 900);
    await clock.advance(100);
    expect(started).toEqual(["a"]);
    await end("a");
    await clock.advance(10_000);
    expect(started).toEqual(["a"]);
  });

  test("is removed when the queue forgets the key", async () => {
    const { clock, queue, started } = controlledQueue();
    queue.start();
    queue.addAfter("a", 100);
    queue.forget("a");
    await clock.advance(1_000);
    expect(started).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});

describe("stopping a work queue", () => {
  test("waits for running reconciles, and starts no other reconcile", async () => {
    const { clock, queue, started, end } = controlledQueue();
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
    expect(started).toEqual(["a"]);
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

describe("the observer of a work queue", () => {
  test("receives each added key, and the waiting time, the result and the duration of each reconcile", async () => {
    const calls: unknown[] = [];
    const { clock, queue, end } = controlledQueue({
      observer: {
        added: (priority) => calls.push(["added", priority]),
        started: (key, waitedMs) => calls.push(["started", key, waitedMs]),
        finished: (key, result, tookMs) => calls.push(["finished", key, result, tookMs]),
      },
    });
    queue.add("a");
    await clock.advance(30);
    queue.start();
    await clock.advance(12);
    await end("a", new Error("no"));
    expect(calls).toEqual([
      ["added", "change"],
      ["started", "a", 30],
      ["finished", "a", "failed", 12],
    ]);
  });
});
