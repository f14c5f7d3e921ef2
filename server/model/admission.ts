import { Failure } from "../errors.ts";

export interface AdmissionLimits {
  /** Streams that speak at once. */
  readonly maxStreams: number;
  /** Requests that may wait. */
  readonly maxQueued: number;
  /** Longest wait. */
  readonly deadlineMs: number;
}

type Release = () => void;

/** Lets a bounded number of streams speak, a bounded number wait for a bounded time, and refuses the rest at once. */
export class Admission {
  readonly limits: AdmissionLimits;
  #speaking = 0;
  readonly #queue = new Set<() => void>();
  /** Mean time that a stream holds its place, milliseconds; recent streams weigh more. */
  #serviceMs = 1_000;
  #idle = Promise.withResolvers<void>();

  constructor(limits: AdmissionLimits) {
    this.limits = limits;
    this.#idle.resolve();
  }

  get speaking(): number {
    return this.#speaking;
  }

  get queued(): number {
    return this.#queue.size;
  }

  /**
   * Waits for a place. Resolves with undefined when the signal aborts first.
   * @throws Failure `saturated` when the queue is full or the deadline passes.
   */
  async enter(signal: AbortSignal): Promise<Release | undefined> {
    if (signal.aborted) return undefined;
    if (this.#speaking < this.limits.maxStreams) return this.#begin();
    if (this.#queue.size >= this.limits.maxQueued) throw this.#saturated();
    const outcome = await this.#wait(signal);
    if (outcome === "late") throw this.#saturated();
    return outcome === "gone" ? undefined : this.#begin(true);
  }

  /** Resolves when nothing speaks or waits. */
  async idle(): Promise<void> {
    while (this.#speaking > 0) await this.#idle.promise;
  }

  #wait(signal: AbortSignal): Promise<"turn" | "late" | "gone"> {
    return new Promise((resolve) => {
      const leave = (outcome: "turn" | "late" | "gone") => {
        clearTimeout(timer);
        signal.removeEventListener("abort", gone);
        this.#queue.delete(turn);
        resolve(outcome);
      };
      const turn = () => leave("turn");
      const gone = () => leave("gone");
      const timer = setTimeout(() => leave("late"), this.limits.deadlineMs);
      signal.addEventListener("abort", gone, { once: true });
      this.#queue.add(turn);
    });
  }

  /** A place that was handed on stays counted, so that nobody slips in between. */
  #begin(handedOn = false): Release {
    if (!handedOn) this.#speaking++;
    if (this.#speaking === 1 && !handedOn) this.#idle = Promise.withResolvers<void>();
    const startedAt = performance.now();
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#serviceMs += 0.1 * (performance.now() - startedAt - this.#serviceMs);
      this.#leave();
    };
  }

  #leave(): void {
    const [next] = this.#queue;
    if (next) {
      next();
      return;
    }
    this.#speaking--;
    if (this.#speaking === 0) this.#idle.resolve();
  }

  #saturated(): Failure {
    const waitMs = (this.#serviceMs * (this.#queue.size + 1)) / this.limits.maxStreams;
    const retryAfterSeconds = Math.min(60, Math.max(1, Math.ceil(waitMs / 1000)));
    return new Failure(
      "saturated",
      `Every stream of this model is taken and its queue is full; try again in ${retryAfterSeconds} s.`,
      { retryAfterSeconds },
    );
  }
}
