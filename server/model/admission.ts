import { type Clock, systemClock } from "../../lib/clock.ts";
import { Failure } from "../contract/errors.ts";
import { FairQueue } from "./fair-queue.ts";

/** The limits of an admission. They are read at each decision, so the values may change. */
export interface AdmissionLimits {
  /** The number of streams that run at the same time. */
  readonly maxStreams: number;
  /** The number of requests that may wait. */
  readonly maxQueued: number;
  /** The longest wait of a request. */
  readonly deadlineMs: number;
}

type Release = () => void;
type WaitEnd = "turn" | "late" | "gone" | "refused";

/**
 * Decides whether a stream starts, waits or is rejected. Limits apply to the number of streams, to the number
 * of waiting requests, and to their waiting time. The queue serves API keys in turn, so that the requests of
 * one key do not delay the other keys.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  #loweredTo = Number.POSITIVE_INFINITY;
  readonly #clock: Clock;
  #speaking = 0;
  readonly #queue: FairQueue<(end: WaitEnd) => void>;
  /** The mean duration of a stream in milliseconds. Recent streams have more weight. */
  #serviceMs = 1_000;

  constructor(limits: AdmissionLimits, clock: Clock = systemClock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#queue = new FairQueue(() => limits.maxQueued);
  }

  get limits(): AdmissionLimits {
    const { maxStreams, maxQueued, deadlineMs } = this.#limits;
    return { maxStreams: Math.min(maxStreams, this.#loweredTo), maxQueued, deadlineMs };
  }

  /** Lowers the number of streams to the measured number that is faster than real time. */
  lowerTo(maxStreams: number): void {
    this.#loweredTo = Math.min(this.#loweredTo, maxStreams);
  }

  get speaking(): number {
    return this.#speaking;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Waits for a slot. The promise resolves with undefined if the signal aborts first.
   * @param caller the ID of the request's API key. Keys have turns in the queue.
   * @param mayWait if false, a request without a free slot is rejected immediately.
   * @throws Failure `saturated` if the queue is full or the deadline passes.
   */
  async enter(signal: AbortSignal, caller = "", mayWait = true): Promise<Release | undefined> {
    if (signal.aborted) return undefined;
    this.#admitWaiting(); // The limit may have been raised since the last stream ended.
    if (this.#speaking < this.limits.maxStreams) return this.#begin();
    if (!mayWait) throw this.#saturated(caller);
    const end = await this.#wait(signal, caller);
    if (end === "late" || end === "refused") throw this.#saturated(caller);
    return end === "gone" ? undefined : this.#begin(true);
  }

  #wait(signal: AbortSignal, caller: string): Promise<WaitEnd> {
    return new Promise((resolve) => {
      const end = (how: WaitEnd) => {
        cancel();
        signal.removeEventListener("abort", gone);
        this.#queue.remove(caller, end);
        resolve(how);
      };
      const gone = () => end("gone");
      const cancel = this.#clock.after(this.limits.deadlineMs, () => end("late"));
      signal.addEventListener("abort", gone, { once: true });
      const { waits, turnedAway } = this.#queue.add(caller, end);
      turnedAway?.("refused");
      if (!waits) end("refused");
    });
  }

  /**
   * Starts a stream. A slot that passes directly from one stream to the next stays counted, so that no other
   * request gets the slot.
   * @param isHandedOver whether the slot comes directly from another stream.
   */
  #begin(isHandedOver = false): Release {
    if (!isHandedOver) this.#speaking++;
    const startedAt = this.#clock.monotonicMs();
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#serviceMs += 0.1 * (this.#clock.monotonicMs() - startedAt - this.#serviceMs);
      this.#leave();
    };
  }

  #leave(): void {
    this.#speaking--;
    this.#admitWaiting();
  }

  #admitWaiting(): void {
    while (this.#speaking < this.limits.maxStreams) {
      const next = this.#queue.next();
      if (!next) return;
      this.#speaking++;
      next("turn");
    }
  }

  #saturated(caller: string): Failure {
    const waitMs = (this.#serviceMs * (this.#queue.ahead(caller) + 1)) / this.limits.maxStreams;
    const retryAfterSeconds = Math.min(60, Math.max(1, Math.ceil(waitMs / 1000)));
    return new Failure(
      "saturated",
      `All streams of this model are in use and its queue is full. Send the request again in ${retryAfterSeconds} s.`,
      { retryAfterSeconds },
    );
  }
}
