import { abortableSleep } from "./abortable-sleep.ts";

export interface RestartPolicy {
  readonly firstMs: number;
  readonly mostMs: number;
  /** A process that lived this long counts as healthy: its end does not lengthen the next wait. */
  readonly provenAfterMs: number;
}

/** The wait before a process is restarted. It doubles each time the process ends early. */
export class RestartBackoff {
  readonly #policy: RestartPolicy;
  #inARow = 0;

  constructor(policy: RestartPolicy) {
    this.#policy = policy;
  }

  /** Early ends and failed starts in a row. */
  get inARow(): number {
    return this.#inARow;
  }

  /** Call this whenever the process ends. */
  ended(livedMs: number): void {
    if (livedMs >= this.#policy.provenAfterMs) this.#inARow = 0;
  }

  /** The wait before the next start. */
  nextMs(): number {
    const { firstMs, mostMs } = this.#policy;
    return Math.min(mostMs, firstMs * 2 ** Math.min(this.#inARow++, 32));
  }

  /** Waits and starts, until a start succeeds or the signal aborts. Never rejects. */
  async restart(
    start: () => Promise<void>,
    signal: AbortSignal,
    onFailure: (error: unknown) => void,
  ): Promise<void> {
    while (!signal.aborted) {
      await abortableSleep(this.nextMs(), signal);
      if (signal.aborted) return;
      try {
        return await start();
      } catch (error) {
        onFailure(error);
      }
    }
  }
}
