import { sleep, systemClock } from "./clock.ts";

/** Exponential delays with jitter: `baseMs`, doubled at each failure up to `capMs`, each spread over ±`jitter` of itself. */
export type BackoffPolicy = {
  baseMs: number;
  capMs: number;
  /** 0 to 1. */
  jitter: number;
};

/** Delay before the attempt that follows `failures` (1 or more) failures in a row. `random` gives [0, 1). */
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
  /** A process that lived this long counts as healthy: its end does not lengthen the next wait. */
  readonly provenAfterMs: number;
}

/** The wait before a process is restarted. It doubles each time the process ends early. */
export class RestartBackoff extends Backoff {
  readonly #provenAfterMs: number;

  constructor({ firstMs, mostMs, provenAfterMs }: RestartPolicy) {
    super({ baseMs: firstMs, capMs: mostMs, jitter: 0 });
    this.#provenAfterMs = provenAfterMs;
  }

  /** Call this whenever the process ends. */
  ended(livedMs: number): void {
    if (livedMs >= this.#provenAfterMs) this.reset();
  }

  /** Waits and starts, until a start succeeds or the signal aborts. Never rejects. */
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
