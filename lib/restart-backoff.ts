import { abortableSleep } from "./abortable-sleep.ts";

export interface RestartPolicy {
  readonly firstMs: number;
  readonly mostMs: number;
  /** One that lived this long was fine: its end does not lengthen the next wait. */
  readonly provenAfterMs: number;
}

/** How long to wait before what ended is started again: twice as long with each end in a row. */
export class RestartBackoff {
  readonly #policy: RestartPolicy;
  #inARow = 0;

  constructor(policy: RestartPolicy) {
    this.#policy = policy;
  }

  /** Ends and failed starts since the last one that was fine, and of which `nextMs` was told. */
  get inARow(): number {
    return this.#inARow;
  }

  /** To be told of every end. */
  ended(livedMs: number): void {
    if (livedMs >= this.#policy.provenAfterMs) this.#inARow = 0;
  }

  /** The wait before the next start. */
  nextMs(): number {
    const { firstMs, mostMs } = this.#policy;
    return Math.min(mostMs, firstMs * 2 ** Math.min(this.#inARow++, 32));
  }

  /** Waits, then starts; again and again until it is started or the signal aborts. Never rejects. */
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
