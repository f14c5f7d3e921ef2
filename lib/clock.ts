/** Time as an argument, so that a test can move it. */
export interface Clock {
  /** Wall time in milliseconds since 1970; for time stamps only, as it may jump. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never jumps. For durations and deadlines. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, callback: () => void, options?: TimerOptions): () => void;
}

export interface TimerOptions {
  /** The process may end while this timer waits. */
  readonly isBackground?: boolean;
}

/** A longer timer fires at once (Node.js, `setTimeout`). */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback, { isBackground = false } = {}) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), longestTimerMs));
    if (isBackground) timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Calls back once an interval, in the background; the returned function ends it. */
export function every(clock: Clock, intervalMs: number, callback: () => void): () => void {
  const next = () =>
    clock.after(
      intervalMs,
      () => {
        cancel = next();
        callback();
      },
      { isBackground: true },
    );
  let cancel = next();
  return () => cancel();
}

/** Resolves after `delayMs`, or at once when `signal` aborts; it never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
