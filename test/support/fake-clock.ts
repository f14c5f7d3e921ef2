import { type Clock, systemClock } from "../../lib/clock.ts";
import { eventually } from "./eventually.ts";

/** A clock that a test moves. */
export interface TestClock extends Clock {
  /** When the next callback is due, by `monotonicMs`; undefined when none waits. */
  readonly nextDueMs: number | undefined;
  /** Moves on, stopping at each timer that falls due and letting what it woke come to rest. */
  advance(durationMs: number): Promise<void>;
}

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** Timers in the order in which they fall due; of those due together the one set first comes first. */
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

/** A clock that stands still until a test moves it. */
export class FakeClock implements TestClock {
  #nowMs: number;
  readonly #timers = new Timers();

  constructor(nowMs = Date.UTC(2030, 0, 1)) {
    this.#nowMs = nowMs;
  }

  /** How many callbacks wait; a program at rest leaves none. */
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
    this.#nowMs = Math.max(this.#nowMs, endMs); // another may have moved it further meanwhile
  }
}

/** A clock that goes on with real time, and a test may skip some of it. */
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

  /** One real timer, for whichever is due next. */
  #arm(): void {
    this.#cancelReal?.();
    const { next } = this.#timers;
    this.#cancelReal = next && systemClock.after(next.dueMs - this.monotonicMs(), () => this.#fire());
  }

  /** A real timer may come a little early. */
  #fire(): void {
    const { next } = this.#timers;
    if (next && next.dueMs <= this.monotonicMs()) this.#run(next);
    else this.#arm();
  }
}

/** Lets every promise that can go on do so. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Like `eventually`, but moves the clock by `stepMs` before each check, so that polling code runs
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
