import type { PoolOutcome } from "../../../config/contract/pool-metrics.ts";
import type { Clock } from "../../../lib/clock.ts";
import { type ErrorCode, Failure } from "../../contract/errors.ts";
import type { Replica } from "./replicas.ts";

/** The outcome of one stream of a replica. A request that is retried has several streams. */
export interface PoolStreamFacts {
  readonly pool: string;
  readonly revision: string;
  readonly outcome: PoolOutcome;
  readonly firstAudioSeconds: number | undefined;
  /** The seconds of work for each second of audio, as the model tier reports them. */
  readonly realTimeFactor: number | undefined;
}

/**
 * The error codes that the replica caused. The other codes result from the request, or from the load of the
 * replica.
 */
const faults = new Set<ErrorCode>(["model_failed", "model_unreachable", "deadline_exceeded", "internal"]);

interface PoolStreamOptions {
  readonly clock: Clock;
  readonly onPoolStream: (facts: PoolStreamFacts) => void;
}

/** Observes one stream, and reports its end exactly once. */
export class PoolStream {
  readonly #replica: Replica;
  readonly #signal: AbortSignal;
  readonly #onEnd: (facts: PoolStreamFacts) => void;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #firstAudioSeconds: number | undefined;
  #isReported = false;

  /**
   * Starts to observe a stream.
   * @param signal a signal that aborts when the client disconnects. Later failures do not count as failures
   * of the replica.
   */
  constructor(replica: Replica, signal: AbortSignal, { clock, onPoolStream }: PoolStreamOptions) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.#signal = signal;
    this.#replica = replica;
    this.#onEnd = onPoolStream;
  }

  /** Records the first audio. @returns the milliseconds since the invocation. */
  firstAudio(): number {
    const ms = this.#clock.monotonicMs() - this.#startedAtMs;
    this.#firstAudioSeconds = ms / 1000;
    return ms;
  }

  /**
   * Records that the stream is complete.
   * @param audioMs the duration of the audio.
   * @param workMs the time that the model needed for the audio.
   */
  ended(audioMs: number, workMs: number | undefined): void {
    this.#end("ok", audioMs > 0 && workMs !== undefined ? workMs / audioMs : undefined);
  }

  failed(error: unknown): void {
    if (this.#signal.aborted) this.left();
    else this.#end(!(error instanceof Failure) || faults.has(error.code) ? "error" : "refused");
  }

  /** Records that the client disconnected, or that the replica did not cause the failure. */
  left(): void {
    this.#end("gone");
  }

  #end(outcome: PoolOutcome, realTimeFactor?: number): void {
    if (this.#isReported) return;
    this.#isReported = true;
    const { pool, revision = "" } = this.#replica;
    this.#onEnd({ pool, revision, outcome, firstAudioSeconds: this.#firstAudioSeconds, realTimeFactor });
  }
}
