import type { Clock } from "../../lib/clock.ts";
import { ApiError } from "./api-error.ts";

/** Detects a watch without data. It uses one timer, independent of the amount of data. */
export class IdleWatch {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onExpired: () => void;
  #seenMs: number;
  #cancel: () => void;
  expired = false;

  constructor(clock: Clock, limitMs: number, onExpired: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onExpired = onExpired;
    this.#seenMs = clock.monotonicMs();
    this.#cancel = clock.after(limitMs, () => this.#check());
  }

  async *listening(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of stream) {
      this.#seenMs = this.#clock.monotonicMs();
      yield chunk;
    }
  }

  stop(): void {
    this.#cancel();
  }

  error(kind: string): ApiError {
    const message = `WATCH ${kind}: no data arrived for ${this.#limitMs} ms`;
    return new ApiError({ status: 0, reason: "Timeout", message });
  }

  #check(): void {
    const leftMs = this.#seenMs + this.#limitMs - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#cancel = this.#clock.after(leftMs, () => this.#check());
      return;
    }
    this.expired = true;
    this.#onExpired();
  }
}
