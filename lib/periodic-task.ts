import { type Clock, every } from "./clock.ts";

/** Work that is done once an interval, and at other times on request, but never twice at once. */
export class PeriodicTask {
  readonly #work: () => Promise<void>;
  readonly #cancel: () => void;
  #running: Promise<void> | undefined;

  /** @param work must not reject. */
  constructor(clock: Clock, intervalMs: number, work: () => Promise<void>) {
    this.#work = work;
    this.#cancel = every(clock, intervalMs, () => void this.run());
  }

  /** Does the work now. A call during the work waits for its end. */
  run(): Promise<void> {
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Resolves when work that is being done has ended. */
  async stop(): Promise<void> {
    this.#cancel();
    await this.#running;
  }
}
