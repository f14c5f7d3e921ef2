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

/** Failures in a row, and the delay they ask for. */
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
