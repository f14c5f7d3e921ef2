import { type Clock, systemClock } from "../../lib/clock.ts";
import { eventually } from "./eventually.ts";

/** A clock that a test can advance. */
export interface TestClock extends Clock {
  /** The time of the next timer by `monotonicMs`, or undefined without timers. */
  readonly nextDueMs: number | undefined;
  /** Advances the clock. After each timer that fires, waits until the resulting work has ended. */
  advance(durationMs: number): Promise<void>;
}

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/**
 * Timers in the order of their due times. Timers with the same due time keep the order in which they were
 * set.
 */
class Timers {
  #waiting: Timer[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  get next(): Timer | undefined {
    return this.#waiting[0];
  }

  add(timer: Timer): void {
    const later = this.#waiting.findIndex(({ dueMs }) => dueMs > timer.dueMs);
    this.#waiting.splice(later === -1 ? this.#waiting.length : later, 0, timer);
  }

  remove(timer: Timer): void {
    this.#waiting = this.#waiting.filter((other) => other !== timer);
  }
}

/** A clock whose time changes only when a test advances it. */
export class FakeClock implements TestClock {
  #nowMs: number;
  readonly #timers = new Timers();

  constructor(nowMs = Date.UTC(2030, 0, 1)) {
    this.#nowMs = nowMs;
  }

  /** The number of pending timers. An idle program has none. */
  get timers(): number {
    return this.#timers.size;
  }

  get nextDueMs(): number | undefined {
    return this.#timers.next?.dueMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.remove(timer);
  }

  async advance(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs;
    await settle();
    for (let { next } = this.#timers; next && next.dueMs <= endMs; next = this.#timers.next) {
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      this.#timers.remove(next);
      next.callback();
      await settle();
    }
    this.#nowMs = Math.max(this.#nowMs, endMs); // Another call may have advanced the clock further.
  }
}

/** A clock that follows real time. A test can also skip time. */
export class SkippingClock implements TestClock {
  #skippedMs = 0;
  readonly #timers = new Timers();
  #cancelReal: (() => void) | undefined;

  get nextDueMs(): number | undefined {
    return this.#timers.next?.dueMs;
  }

  nowMs(): number {
    return systemClock.nowMs() + this.#skippedMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs() + this.#skippedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.monotonicMs() + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    this.#arm();
    return () => {
      this.#timers.remove(timer);
      this.#arm();
    };
  }

  async advance(durationMs: number): Promise<void> {
    const endMs = this.monotonicMs() + durationMs;
    await settle();
    for (let { next } = this.#timers; next && next.dueMs <= endMs; next = this.#timers.next) {
      this.#skipTo(next.dueMs);
      this.#run(next);
      await settle();
    }
    this.#skipTo(endMs);
    this.#arm();
  }

  #skipTo(monotonicMs: number): void {
    this.#skippedMs += Math.max(0, monotonicMs - this.monotonicMs());
  }

  #run(timer: Timer): void {
    this.#timers.remove(timer);
    timer.callback();
    this.#arm();
  }

  /** Sets the only real timer, for the next timer of this clock. */
  #arm(): void {
    this.#cancelReal?.();
    const { next } = this.#timers;
    this.#cancelReal = next && systemClock.after(next.dueMs - this.monotonicMs(), () => this.#fire());
  }

  /** Runs the next timer. The real timer may fire slightly early, so the method checks the due time again. */
  #fire(): void {
    const { next } = this.#timers;
    if (next && next.dueMs <= this.monotonicMs()) this.#run(next);
    else this.#arm();
  }
}

/** Waits until all pending promise callbacks have run. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Like `eventually`, but advances the clock by `stepMs` before each check, so that polling code runs
 * immediately.
 */
export function eventuallyOn<T>(
  clock: TestClock,
  what: string,
  look: () => T | Promise<T>,
  stepMs = 5_000,
): Promise<Exclude<T, undefined | false>> {
  return eventually(what, async () => {
    await clock.advance(stepMs);
    return look();
  });
}
