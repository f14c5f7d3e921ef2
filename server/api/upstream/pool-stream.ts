import type { PoolOutcome } from "../../../config/contract/pool-metrics.ts";
import type { Clock } from "../../../lib/clock.ts";
import { type ErrorCode, Failure } from "../../contract/errors.ts";
import type { Replica } from "./replicas.ts";

/** What became of one stream that a replica was asked for; a request may have asked several. */
export interface PoolStreamFacts {
  readonly pool: string;
  readonly revision: string;
  readonly outcome: PoolOutcome;
  readonly firstAudioSeconds: number | undefined;
  /** Seconds of work for a second of sound, as the model tier tells it. */
  readonly realTimeFactor: number | undefined;
}

/** Failures of the replica itself; whatever else it answers is about the request, or about how busy it is. */
const faults = new Set<ErrorCode>(["model_failed", "model_unreachable", "deadline_exceeded", "internal"]);

interface PoolStreamOptions {
  readonly clock: Clock;
  readonly onPoolStream: (facts: PoolStreamFacts) => void;
}

/** Follows one stream and tells once how it ended. */
export class PoolStream {
  readonly #replica: Replica;
  readonly #signal: AbortSignal;
  readonly #tell: (facts: PoolStreamFacts) => void;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #firstAudioSeconds: number | undefined;
  #told = false;

  /** @param signal aborts when the caller hangs up: what fails then is nobody's fault. */
  constructor(replica: Replica, signal: AbortSignal, { clock, onPoolStream }: PoolStreamOptions) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.#signal = signal;
    this.#replica = replica;
    this.#tell = onPoolStream;
  }

  /** @returns milliseconds since the replica was asked. */
  firstAudio(): number {
    const ms = this.#clock.monotonicMs() - this.#startedAtMs;
    this.#firstAudioSeconds = ms / 1000;
    return ms;
  }

  /** @param audioMs of sound that took the model `workMs` to make. */
  ended(audioMs: number, workMs: number | undefined): void {
    this.#end("ok", audioMs > 0 && workMs !== undefined ? workMs / audioMs : undefined);
  }

  failed(error: unknown): void {
    if (this.#signal.aborted) this.left();
    else this.#end(!(error instanceof Failure) || faults.has(error.code) ? "error" : "refused");
  }

  /** Nobody listens any more, or nothing can be told of the replica by this. */
  left(): void {
    this.#end("gone");
  }

  #end(outcome: PoolOutcome, realTimeFactor?: number): void {
    if (this.#told) return;
    this.#told = true;
    const { pool, revision = "" } = this.#replica;
    this.#tell({ pool, revision, outcome, firstAudioSeconds: this.#firstAudioSeconds, realTimeFactor });
  }
}
