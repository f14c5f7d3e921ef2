import type { PoolOutcome } from "../../../config/contract/pool-metrics.ts";
import type { Clock } from "../../../lib/clock.ts";
import { type ErrorCode, Failure } from "../../contract/errors.ts";
import type { Replica } from "./replicas.ts";

/** The outcome of one stream of a replica. A request may have several. */
export interface PoolStreamFacts {
  readonly pool: string;
  readonly revision: string;
  readonly outcome: PoolOutcome;
  readonly firstAudioSeconds: number | undefined;
  /** Seconds of work for each second of audio, as the model tier reports it. */
  readonly realTimeFactor: number | undefined;
}

/** Failures of the replica itself. Other error codes are about the request, or about the replica's load. */
const faults = new Set<ErrorCode>(["model_failed", "model_unreachable", "deadline_exceeded", "internal"]);

interface PoolStreamOptions {
  readonly clock: Clock;
  readonly onPoolStream: (facts: PoolStreamFacts) => void;
}

/** Follows one stream and reports its end once. */
export class PoolStream {
  readonly #replica: Replica;
  readonly #signal: AbortSignal;
  readonly #tell: (facts: PoolStreamFacts) => void;
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #firstAudioSeconds: number | undefined;
  #told = false;

  /** @param signal aborts when the client disconnects; a failure after it has no cause in the replica. */
  constructor(replica: Replica, signal: AbortSignal, { clock, onPoolStream }: PoolStreamOptions) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
    this.#signal = signal;
    this.#replica = replica;
    this.#tell = onPoolStream;
  }

  /** @returns milliseconds since the replica was called. */
  firstAudio(): number {
    const ms = this.#clock.monotonicMs() - this.#startedAtMs;
    this.#firstAudioSeconds = ms / 1000;
    return ms;
  }

  /** @param audioMs of audio that took the model `workMs` to make. */
  ended(audioMs: number, workMs: number | undefined): void {
    this.#end("ok", audioMs > 0 && workMs !== undefined ? workMs / audioMs : undefined);
  }

  failed(error: unknown): void {
    if (this.#signal.aborted) this.left();
    else this.#end(!(error instanceof Failure) || faults.has(error.code) ? "error" : "refused");
  }

  /** The client disconnected, or the replica did not cause the failure. */
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
