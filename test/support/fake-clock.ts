import type { Clock } from "../../operator/loop/clock.ts";

/** A clock that stands still until a test moves it. */
export class FakeClock implements Clock {
  #nowMs: number;
  #timers: { dueMs: number; callback: () => void }[] = [];

  constructor(nowMs = Date.UTC(2030, 0, 1)) {
    this.#nowMs = nowMs;
  }

  /** How many callbacks wait; a program at rest leaves none. */
  get timers(): number {
    return this.#timers.length;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves on, stopping at each timer that falls due and letting what it woke come to rest. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs;
    await settle();
    for (let timer = this.#next(endMs); timer !== undefined; timer = this.#next(endMs)) {
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      this.#timers = this.#timers.filter((other) => other !== timer);
      timer.callback();
      await settle();
    }
    this.#nowMs = endMs;
  }

  #next(endMs: number): { dueMs: number; callback: () => void } | undefined {
    const due = this.#timers.filter((timer) => timer.dueMs <= endMs);
    return due.sort((a, b) => a.dueMs - b.dueMs)[0];
  }
}

/** Lets every promise that can go on do so. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
