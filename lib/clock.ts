/** A source of time, which tests replace to control the time. */
export interface Clock {
  /** Wall time in milliseconds since 1970. Use it only for time stamps, because it may jump. */
  nowMs(): number;
  /** Milliseconds since an arbitrary start. It never jumps, so use it for durations and deadlines. */
  monotonicMs(): number;
  /** Calls `callback` once after `delayMs`. The returned function cancels the timer. */
  after(delayMs: number, callback: () => void, options?: TimerOptions): () => void;
}

export interface TimerOptions {
  /** Whether the process may end before the timer fires. */
  readonly isBackground?: boolean;
}

/** The longest delay of `setTimeout`. Node.js fires a timer with a longer delay immediately. */
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

/** Calls `callback` after each interval, with background timers. The returned function stops the calls. */
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

/** Resolves after `delayMs`, or as soon as `signal` aborts. The promise never rejects. */
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
