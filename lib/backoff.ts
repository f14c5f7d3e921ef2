import { sleep, systemClock } from "./clock.ts";

/**
 * Exponential delays with jitter. The delay begins at `baseMs` and doubles after each failure, up to `capMs`.
 * Each delay varies randomly by up to ±`jitter` of its value.
 */
export type BackoffPolicy = {
  baseMs: number;
  capMs: number;
  /** A number from 0 to 1. */
  jitter: number;
};

/**
 * Returns the delay after `failures` consecutive failures (1 or more). `random` returns a number in [0, 1).
 */
export function backoffMs(policy: BackoffPolicy, failures: number, random: () => number): number {
  const plainMs = Math.min(policy.capMs, policy.baseMs * 2 ** Math.min(failures - 1, 40));
  const spread = 1 + policy.jitter * (2 * random() - 1);
  return Math.min(policy.capMs, plainMs * spread);
}

/** Counts consecutive failures, and computes the delay before the next attempt. */
export class Backoff {
  readonly #policy: BackoffPolicy;
  readonly #random: () => number;
  #failures = 0;

  constructor(policy: BackoffPolicy, random: () => number = Math.random) {
    this.#policy = policy;
    this.#random = random;
  }

  get failures(): number {
    return this.#failures;
  }

  nextMs(): number {
    this.#failures += 1;
    return backoffMs(this.#policy, this.#failures, this.#random);
  }

  reset(): void {
    this.#failures = 0;
  }
}

export interface RestartPolicy {
  readonly firstMs: number;
  readonly mostMs: number;
  /**
   * A process that ran at least this long counts as healthy. When a healthy process ends, the wait starts
   * again at `firstMs`.
   */
  readonly provenAfterMs: number;
}

/** Computes the wait before a process is restarted. The wait doubles each time the process ends early. */
export class RestartBackoff extends Backoff {
  readonly #provenAfterMs: number;

  constructor({ firstMs, mostMs, provenAfterMs }: RestartPolicy) {
    super({ baseMs: firstMs, capMs: mostMs, jitter: 0 });
    this.#provenAfterMs = provenAfterMs;
  }

  /** Call this method whenever the process ends. */
  ended(livedMs: number): void {
    if (livedMs >= this.#provenAfterMs) this.reset();
  }

  /** Waits, and calls `start`, until `start` succeeds or the signal aborts. The promise never rejects. */
  async restart(
    start: () => Promise<void>,
    signal: AbortSignal,
    onFailure: (error: unknown) => void,
  ): Promise<void> {
    while (!signal.aborted) {
      await sleep(systemClock, this.nextMs(), signal);
      if (signal.aborted) return;
      try {
        return await start();
      } catch (error) {
        onFailure(error);
      }
    }
  }
}
