import { sleep, systemClock } from "../../../lib/clock.ts";
import type { Load } from "../load.ts";
import { ContextMeter, type ContextRecord } from "./context-meter.ts";
import { type ContextPlan, SocketFailure, type SocketTarget, SpeakingSocket } from "./speaking-socket.ts";
import { type WrittenText, writeText } from "./written-text.ts";

export interface SocketLoad extends Load {
  /** The tokens per second of each text. If the value is undefined, the client sends each text at once. */
  readonly pace: number | undefined;
}

export interface SocketLoadResult {
  readonly records: readonly ContextRecord[];
  /** The duration of the run, without the time to open the sockets. */
  readonly elapsedSeconds: number;
}

/** The client cancels every n-th context of a socket. */
const cancelEvery = 4;
const pauseAfterFailureMs = 100;
/**
 * The longest time for retries of rejected upgrades. A server limits the number of new sockets per second of
 * a key.
 */
const openingLimitMs = 60_000;
const defaultRetrySeconds = 1;

/**
 * Opens the sockets, and runs contexts on each of them, one after another, until the time has elapsed.
 * @param signal ends the run early.
 * @param onRecord is called for each finished context.
 */
export async function runSocketLoad(
  target: SocketTarget,
  { streams, seconds, pace }: SocketLoad,
  signal: AbortSignal,
  onRecord: (record: ContextRecord) => void = () => undefined,
): Promise<SocketLoadResult> {
  const texts = inTurn(target.texts.map(writeText));
  const callers = Array.from({ length: streams }, () => new Caller(target));
  await Promise.all(callers.map((caller) => caller.prepare(signal)));
  const over = AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
  const records: ContextRecord[] = [];
  const startedAt = performance.now();
  await Promise.all(
    callers.map(async (caller, at) => {
      if (pace !== undefined) await sleep(systemClock, startDelayMs(target, pace, at / streams), over);
      for (let number = 1; !over.aborted; number++) {
        const plan = { text: texts(), pace, isCancelled: number % cancelEvery === 0 };
        const record = await caller.speak(plan, over);
        records.push(record);
        onRecord(record);
        if (record.stream.outcome === "failed") await sleep(systemClock, pauseAfterFailureMs, over);
      }
    }),
  );
  const elapsedSeconds = (performance.now() - startedAt) / 1000;
  for (const caller of callers) caller.close();
  return { records, elapsedSeconds };
}

/**
 * Returns the delay of a client that sends its texts at a pace. Without the delay, all clients would complete
 * their sentences at the same moment, which does not happen in a real service.
 * @param share the position of the client among all clients, from 0 to 1.
 */
function startDelayMs({ texts }: SocketTarget, pace: number, share: number): number {
  const tokens = texts.reduce((sum, text) => sum + writeText(text).tokens.length, 0) / texts.length;
  return (share * tokens * 1000) / pace;
}

/** A client with one socket, which reconnects after a failure. */
class Caller {
  readonly #target: SocketTarget;
  #socket: SpeakingSocket | undefined;

  constructor(target: SocketTarget) {
    this.#target = target;
  }

  /**
   * Opens the socket before the measurement starts. If the connection fails, `speak` tries again and reports
   * the failure.
   */
  async prepare(signal: AbortSignal): Promise<void> {
    const endMs = performance.now() + openingLimitMs;
    while (!signal.aborted && performance.now() < endMs) {
      const failure = await this.#open();
      if (failure?.code !== "http_429") return;
      await sleep(systemClock, (failure.retryAfterSeconds ?? defaultRetrySeconds) * 1000, signal);
    }
  }

  async speak(plan: ContextPlan, signal: AbortSignal): Promise<ContextRecord> {
    const failure = this.#socket?.isOpen ? undefined : await this.#open();
    if (failure || !this.#socket) return unopened(this.#target, failure?.code ?? "broken_socket");
    const record = await this.#socket.speak(plan, signal);
    // Otherwise late messages of this context would count for the next context.
    if (record.stream.outcome === "failed") this.close();
    return record;
  }

  close(): void {
    this.#socket?.terminate();
    this.#socket = undefined;
  }

  async #open(): Promise<SocketFailure | undefined> {
    try {
      this.#socket = await SpeakingSocket.open(this.#target);
      return undefined;
    } catch (error) {
      if (error instanceof SocketFailure) return error;
      throw error;
    }
  }
}

function unopened({ rate }: SocketTarget, code: string): ContextRecord {
  return new ContextMeter(rate).failed(0, code);
}

function inTurn(texts: readonly WrittenText[]): () => WrittenText {
  let next = 0;
  return () => texts[next++ % texts.length] ?? writeText("");
}
