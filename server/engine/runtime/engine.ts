import type { EngineFrame, Utterance } from "../../contract/speech.ts";
import type { GeneratorCounts } from "./generator-outcomes.ts";

/**
 * The model tier's interface of a speech engine. Frames are pulled: an engine works at most one utterance
 * ahead of its client, and the text front end keeps utterances short.
 */
export interface Engine {
  readonly name: string;
  /** Sampling rate of its audio in Hz. */
  readonly rate: number;
  /**
   * Tokens per second of audio at stretch 1, for an engine that samples. Its utterances have sampling
   * settings.
   */
  readonly tokensPerSecond?: number;
  /** Utterances that it synthesizes at the same time. Further ones wait. */
  readonly capacity: number;
  /** Measured number of concurrent streams that it keeps faster than real time. */
  readonly realTimeStreams?: number;
  /**
   * How much longer than the one before each phrase of a stream may be, so that it is ready in time. Undefined if
   * any length is.
   */
  readonly phraseGrowth?: number | undefined;
  /**
   * Whether the next utterance of a stream may start as soon as this one is written, before it is consumed.
   */
  readonly worksAhead?: boolean;
  /**
   * Synthesizes one utterance. Ends early and without an error when the signal aborts.
   * @throws Failure `model_failed` if the engine failed, and failed again in the one retry that it gets
   * before any audio.
   * @param onWritten called by an engine that works ahead.
   */
  speak(utterance: Utterance, signal: AbortSignal, onWritten?: OnWritten): AsyncIterable<EngineFrame>;
  /** Variant of the engine, if it has several: a part of a sentence for people. */
  readonly variant?: string | undefined;
  /** Number of processes that ended unexpectedly. */
  readonly restarts: number;
  /** Whether it works, or restarts within its budget. */
  healthy(): boolean;
  /** Reason why it does not work at the moment, if known. */
  notReady?(): string | undefined;
  /** Counts of a language model. */
  readonly counts?: GeneratorCounts;
  close(): Promise<void>;
}

/**
 * Called when the engine has written all of an utterance, which may be before it was consumed.
 * @param seconds of its audio, if the engine knows them.
 */
export type OnWritten = (seconds?: number) => void;

export interface EngineLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface EngineOptions {
  /** Number of engine processes. */
  readonly processes: number;
  readonly log: EngineLog;
}

/** The engine cannot run on this machine. The message names what to install. */
export class EngineMissing extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineMissing";
  }
}
