import { type BackoffPolicy, backoffMs } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { ReconcileOutcome } from "../facts/outcome.ts";

/**
 * The priority of a key. New and changed keys (`change`) have priority over keys that are only checked again
 * (`resync`).
 */
export type Priority = "change" | "resync";

/**
 * Reconciles one key. `signal` aborts when a stop takes longer than its grace period. A reconcile that runs
 * alone in its group calls `share` when other keys of the group may be reconciled concurrently.
 */
export type Reconcile = (key: string, signal: AbortSignal, share: () => void) => Promise<ReconcileOutcome>;

/**
 * Receives the activity of the queue for metrics and logs. Its methods must not throw. Times are in
 * milliseconds.
 */
export type QueueObserver = {
  added?(priority: Priority): void;
  depth?(waiting: number, running: number): void;
  started?(key: string, waitedMs: number): void;
  finished?(key: string, result: ReconcileOutcome["kind"] | "failed", tookMs: number): void;
  /** The reconcile threw an error. The queue retries it after `retryMs`. */
  failed?(key: string, error: unknown, failures: number, retryMs: number): void;
};

export type QueueOptions = {
  pass: Reconcile;
  workers: number;
  /** Returns the group of a key. By default each key has its own group. */
  turnOf?: (key: string) => Turn;
  clock: Clock;
  random?: () => number;
  backoff?: BackoffPolicy;
  observer?: QueueObserver;
};

export interface Turn {
  readonly group: string;
  /** Whether the key must be reconciled alone in its group. */
  readonly alone: boolean;
}

/** The current work of the queue. */
export interface QueueActivity {
  readonly waiting: number;
  readonly running: number;
  /** The number of reconciles since the start, including running reconciles. */
  readonly begun: number;
}

interface Taken {
  readonly key: string;
  readonly turn: Turn;
  readonly waitedMs: number;
}

/**
 * After this wait, keys with priority `resync` get every fourth reconcile, so that many changes do not block
 * them.
 */
const agedMs = 1_000;
const agedEvery = 4;

const defaultBackoff: BackoffPolicy = { baseMs: 5, capMs: 5 * 60_000, jitter: 0.2 };

/**
 * The queue of keys to reconcile. A key is queued at most once, because only the latest state counts, and has
 * at most one reconcile at a time. A key that is added during its reconcile is reconciled again afterwards. A
 * failed reconcile is retried with backoff. If the key is added in the meantime, it is reconciled without a
 * wait.
 *
 * A key can also have one timer, which `addAfter` sets. The earliest time applies.
 */
export class WorkQueue {
  readonly #options: QueueOptions;
  readonly #random: () => number;
  readonly #backoff: BackoffPolicy;
  readonly #waiting: Record<Priority, Map<string, number>> = { change: new Map(), resync: new Map() };
  readonly #again = new Map<string, Priority | "unless-failed">();
  readonly #running = new Map<string, Promise<void>>();
  /**
   * The running reconciles by group. A group has either one reconcile that runs alone, or any number of
   * concurrent reconciles.
   */
  readonly #busyGroups = new Map<string, { passes: number; alone: boolean }>();
  readonly #timers = new Map<string, { dueMs: number; cancel: () => void }>();
  readonly #failures = new Map<string, number>();
  readonly #abort = new AbortController();
  #begun = 0;
  #state: "idle" | "running" | "stopped" = "idle";

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#backoff = options.backoff ?? defaultBackoff;
  }

  /** The current work. Keys that only have a timer do not count. */
  get activity(): QueueActivity {
    const { change, resync } = this.#waiting;
    const waiting = change.size + resync.size + this.#again.size;
    return { waiting, running: this.#running.size, begun: this.#begun };
  }

  /** Starts the reconciles. Until then, added keys wait in the queue. */
  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "running";
    this.#dispatch();
  }

  add(key: string, priority: Priority = "change"): void {
    if (this.#state === "stopped") return;
    this.#options.observer?.added?.(priority);
    if (this.#running.has(key)) {
      if (this.#again.get(key) !== "change") this.#again.set(key, priority);
      return;
    }
    this.#enqueue(key, priority);
    this.#dispatch();
  }

  /**
   * Adds the key like {@link add} if its last reconcile succeeded. A key whose last reconcile failed keeps
   * its backoff. Use this method for changes that cannot solve the failure, such as the status that reports
   * the failure.
   */
  addUnlessFailed(key: string): void {
    if (!this.#failures.has(key)) this.add(key);
    else if (this.#running.has(key) && !this.#again.has(key)) this.#again.set(key, "unless-failed");
  }

  /** Adds the key after `delayMs`. If the key already has a timer, the earlier timer is kept. */
  addAfter(key: string, delayMs: number, priority: Priority = "resync"): void {
    if (this.#state === "stopped") return;
    if (delayMs <= 0) {
      this.add(key, priority);
      return;
    }
    const dueMs = this.#options.clock.monotonicMs() + delayMs;
    const earlier = this.#timers.get(key);
    if (earlier !== undefined && earlier.dueMs <= dueMs) return;
    earlier?.cancel();
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#timers.delete(key);
      this.add(key, priority);
    });
    this.#timers.set(key, { dueMs, cancel });
  }

  /** Removes the timer and the failures of a deleted key. A running reconcile continues. */
  forget(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
    this.#failures.delete(key);
  }

  /**
   * Starts no further reconciles, and waits for running reconciles. The signal of running reconciles aborts
   * after `graceMs`.
   */
  async stop(graceMs = 20_000): Promise<void> {
    this.#state = "stopped";
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
    this.#again.clear();
    for (const keys of Object.values(this.#waiting)) keys.clear();
    const ended = new AbortController();
    const grace = sleep(this.#options.clock, graceMs, ended.signal).then(() => this.#abort.abort());
    await Promise.all(this.#running.values());
    ended.abort();
    await grace;
    this.#reportDepth();
  }

  #enqueue(key: string, priority: Priority): void {
    const { change, resync } = this.#waiting;
    if (change.has(key)) return;
    const sinceMs = resync.get(key) ?? this.#options.clock.monotonicMs();
    if (priority === "change") resync.delete(key);
    this.#waiting[priority].set(key, sinceMs);
  }

  #dispatch(): void {
    while (this.#state === "running" && this.#running.size < this.#options.workers) {
      const next = this.#take();
      if (next === undefined) break;
      this.#begin(next.turn);
      this.#begun += 1;
      this.#running.set(next.key, this.#work(next));
    }
    this.#reportDepth();
  }

  /** Takes the first key that may be reconciled. The keys of a group are taken in the order of the queue. */
  #take(): Taken | undefined {
    const { turnOf = (key) => ({ group: key, alone: true }), clock } = this.#options;
    const held = new Set<string>();
    for (const keys of this.#inOrder()) {
      for (const [key, sinceMs] of keys) {
        const turn = turnOf(key);
        if (held.has(turn.group)) continue;
        if (this.#isHeldBack(turn)) {
          held.add(turn.group);
          continue;
        }
        keys.delete(key);
        return { key, turn, waitedMs: clock.monotonicMs() - sinceMs };
      }
    }
    return undefined;
  }

  #inOrder(): Map<string, number>[] {
    const { change, resync } = this.#waiting;
    const [oldestMs] = resync.values();
    const isAged = oldestMs !== undefined && this.#options.clock.monotonicMs() - oldestMs >= agedMs;
    return isAged && this.#begun % agedEvery === agedEvery - 1 ? [resync, change] : [change, resync];
  }

  #isHeldBack({ group, alone }: Turn): boolean {
    const busy = this.#busyGroups.get(group);
    return busy !== undefined && (alone || busy.alone);
  }

  #begin({ group, alone }: Turn): void {
    const busy = this.#busyGroups.get(group);
    if (busy === undefined) this.#busyGroups.set(group, { passes: 1, alone });
    else busy.passes += 1;
  }

  #share({ group }: Turn): void {
    const busy = this.#busyGroups.get(group);
    if (busy !== undefined) busy.alone = false;
    this.#dispatch();
  }

  #end({ group }: Turn): void {
    const busy = this.#busyGroups.get(group);
    if (busy === undefined) return;
    busy.passes -= 1;
    if (busy.passes === 0) this.#busyGroups.delete(group);
  }

  async #work({ key, turn, waitedMs }: Taken): Promise<void> {
    const { clock, observer, pass } = this.#options;
    const startMs = clock.monotonicMs();
    observer?.started?.(key, waitedMs);
    try {
      // The reconcile starts in a later microtask, so that it never runs in the call that adds the key.
      await Promise.resolve();
      const outcome = await pass(key, this.#abort.signal, () => this.#share(turn));
      this.#failures.delete(key);
      if (outcome.kind !== "settled" && outcome.afterMs !== undefined)
        this.addAfter(key, Math.max(1, outcome.afterMs));
      observer?.finished?.(key, outcome.kind, clock.monotonicMs() - startMs);
    } catch (error) {
      observer?.finished?.(key, "failed", clock.monotonicMs() - startMs);
      this.#retry(key, error);
    } finally {
      this.#end(turn);
      this.#release(key);
    }
  }

  #retry(key: string, error: unknown): void {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const retryMs = backoffMs(this.#backoff, failures, this.#random);
    this.#options.observer?.failed?.(key, error, failures, retryMs);
    this.addAfter(key, retryMs);
  }

  #release(key: string): void {
    this.#running.delete(key);
    const again = this.#again.get(key);
    this.#again.delete(key);
    if (again === "unless-failed") this.addUnlessFailed(key);
    else if (again !== undefined && this.#state === "running") this.#enqueue(key, again);
    this.#dispatch();
  }

  #reportDepth(): void {
    const { change, resync } = this.#waiting;
    this.#options.observer?.depth?.(change.size + resync.size, this.#running.size);
  }
}
