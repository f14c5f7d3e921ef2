/**
 * Time as an argument, so that a test can move it. Two clocks may differ in a test: the operator's decides when work is due, the client's
 * bounds requests and watches, which wait for a real network.
 */
export type Clock = {
  /** Wall time in milliseconds since 1970; for time stamps only, as it may jump. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never jumps. For durations and deadlines. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; the answer cancels it. */
  after(delayMs: number, callback: () => void): () => void;
};

/** A timer above this fires at once (Node.js, `setTimeout`). */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), longestTimerMs));
    return () => clearTimeout(timer);
  },
};

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
