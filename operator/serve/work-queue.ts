import { type BackoffPolicy, backoffMs } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { ReconcileOutcome } from "../facts/outcome.ts";

/** A key that changed (or is new) goes before a key that is only looked at again. */
export type Priority = "change" | "resync";

/**
 * One pass over one key. `signal` aborts when a stop has lasted longer than its grace. A pass that is alone in its group calls `share` when
 * from then on others may run beside it that need not be alone.
 */
export type Reconcile = (key: string, signal: AbortSignal, share: () => void) => Promise<ReconcileOutcome>;

/** Receives everything that a metric may count; must not throw. Times are in milliseconds. */
export type QueueObserver = {
  added?(priority: Priority): void;
  depth?(waiting: number, running: number): void;
  started?(key: string, waitedMs: number): void;
  finished?(key: string, result: ReconcileOutcome["kind"] | "failed", tookMs: number): void;
  /** The pass threw; it is tried again after `retryMs`. */
  failed?(key: string, error: unknown, failures: number, retryMs: number): void;
};

export type QueueOptions = {
  pass: Reconcile;
  workers: number;
  /** The group of a key. Without it each key is a group of its own. */
  turnOf?: (key: string) => Turn;
  clock: Clock;
  random?: () => number;
  backoff?: BackoffPolicy;
  observer?: QueueObserver;
};

export interface Turn {
  readonly group: string;
  /** While its pass runs no other of the group does; passes of a group that need not be alone run side by side. */
  readonly alone: boolean;
}

/** The work that the queue has at this moment. */
export interface QueueActivity {
  readonly waiting: number;
  readonly running: number;
  /** Passes since the start, those that run included. */
  readonly begun: number;
}

interface Taken {
  readonly key: string;
  readonly turn: Turn;
  readonly waitedMs: number;
}

/** A resync that has waited so long has every fourth turn: timed work comes about however many changes there are. */
const agedMs = 1_000;
const agedEvery = 4;

const defaultBackoff: BackoffPolicy = { baseMs: 5, capMs: 5 * 60_000, jitter: 0.2 };

/**
 * Keys waiting for a pass. A key waits at most once (the latest state counts, not the number of events), never has two
 * passes at once, and when added during its pass gets one more afterwards. A pass that throws is repeated with
 * growing delays; a change in between is not held up by them.
 *
 * A key waits in one place at a time for "now", and beside it may have one wake-up set by `addAfter` (the earliest wins).
 */
export class WorkQueue {
  readonly #options: QueueOptions;
  readonly #random: () => number;
  readonly #backoff: BackoffPolicy;
  readonly #waiting: Record<Priority, Map<string, number>> = { change: new Map(), resync: new Map() };
  readonly #again = new Map<string, Priority | "unless-failed">();
  readonly #running = new Map<string, Promise<void>>();
  /** Passes that run now, by group; all of one group are alone, or none. */
  readonly #busyGroups = new Map<string, { passes: number; alone: boolean }>();
  readonly #wakeups = new Map<string, { dueMs: number; cancel: () => void }>();
  readonly #failures = new Map<string, number>();
  readonly #abort = new AbortController();
  #begun = 0;
  #state: "idle" | "running" | "stopped" = "idle";

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#backoff = options.backoff ?? defaultBackoff;
  }

  /** Keys that wake up later do not wait yet. */
  get activity(): QueueActivity {
    const { change, resync } = this.#waiting;
    const waiting = change.size + resync.size + this.#again.size;
    return { waiting, running: this.#running.size, begun: this.#begun };
  }

  /** Keys may be added before the start; they wait. */
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
   * Adds the key like {@link add}, but keeps the backoff of a key whose last pass failed. It serves changes that cannot have removed the
   * cause of the failure, such as the status that reports it.
   */
  addUnlessFailed(key: string): void {
    if (!this.#failures.has(key)) this.add(key);
    else if (this.#running.has(key) && !this.#again.has(key)) this.#again.set(key, "unless-failed");
  }

  /** Wakes the key after `delayMs`; of several wake-ups of a key the earliest is kept. */
  addAfter(key: string, delayMs: number, priority: Priority = "resync"): void {
    if (this.#state === "stopped") return;
    if (delayMs <= 0) {
      this.add(key, priority);
      return;
    }
    const dueMs = this.#options.clock.monotonicMs() + delayMs;
    const earlier = this.#wakeups.get(key);
    if (earlier !== undefined && earlier.dueMs <= dueMs) return;
    earlier?.cancel();
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#wakeups.delete(key);
      this.add(key, priority);
    });
    this.#wakeups.set(key, { dueMs, cancel });
  }

  /** Drops what is known of a key that is gone: its wake-up and its failures. A running pass ends by itself. */
  forget(key: string): void {
    this.#wakeups.get(key)?.cancel();
    this.#wakeups.delete(key);
    this.#failures.delete(key);
  }

  /** Starts no further pass and waits for those that run; after `graceMs` their signal aborts, and they are still awaited. */
  async stop(graceMs = 20_000): Promise<void> {
    this.#state = "stopped";
    for (const { cancel } of this.#wakeups.values()) cancel();
    this.#wakeups.clear();
    this.#again.clear();
    for (const keys of Object.values(this.#waiting)) keys.clear();
    const ended = new AbortController();
    const grace = sleep(this.#options.clock, graceMs, ended.signal).then(() => this.#abort.abort());
    await Promise.all(this.#running.values());
    ended.abort();
    await grace;
    this.#tellDepth();
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
    this.#tellDepth();
  }

  /** The first whose turn it is; who waits for its turn is not overtaken by others of its group. */
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
      // Off the caller's stack, so that a listener which adds a key never runs the pass itself.
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

  #tellDepth(): void {
    const { change, resync } = this.#waiting;
    this.#options.observer?.depth?.(change.size + resync.size, this.#running.size);
  }
}
