import { sleep, systemClock } from "../../../lib/clock.ts";
import type { Load } from "../load.ts";
import { ContextMeter, type ContextRecord } from "./context-meter.ts";
import { type ContextPlan, SocketFailure, type SocketTarget, SpeakingSocket } from "./speaking-socket.ts";
import { type WrittenText, writeText } from "./written-text.ts";

export interface SocketLoad extends Load {
  /** Tokens per second of each text. Undefined sends each text at once. */
  readonly pace: number | undefined;
}

export interface SocketLoadResult {
  readonly records: readonly ContextRecord[];
  /** Without the time in which the sockets opened. */
  readonly elapsedSeconds: number;
}

/** Every n-th context of a socket is cancelled. */
const cancelEvery = 4;
const pauseAfterFailureMs = 100;
/** A server limits how many sockets a key opens per second, so refused upgrades are repeated. */
const openingLimitMs = 60_000;
const defaultRetrySeconds = 1;

/**
 * Opens the sockets, and keeps each of them busy with one context after another until the time is up.
 * @param signal ends the run early. @param onRecord called for each finished context.
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
    callers.map(async (caller) => {
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

/** One client with one socket. It connects again after a failure. */
class Caller {
  readonly #target: SocketTarget;
  #socket: SpeakingSocket | undefined;

  constructor(target: SocketTarget) {
    this.#target = target;
  }

  /** Opens the socket before the measured time. `speak` reports a socket that cannot be opened. */
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
    if (record.stream.outcome === "failed") this.close(); // Its later messages would confuse the next context.
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
