import { type Clock, every } from "./clock.ts";

/** Runs work at an interval, and also on request. The work never runs twice at the same time. */
export class PeriodicTask {
  readonly #work: () => Promise<void>;
  readonly #cancel: () => void;
  #running: Promise<void> | undefined;

  /** The promise of `work` must not reject. */
  constructor(clock: Clock, intervalMs: number, work: () => Promise<void>) {
    this.#work = work;
    this.#cancel = every(clock, intervalMs, () => void this.run());
  }

  /** Runs the work now. If the work is already running, the call waits for its end. */
  run(): Promise<void> {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Stops the interval. Resolves when running work has ended. */
  async stop(): Promise<void> {
    this.#cancel();
    await this.#running;
  }
}
