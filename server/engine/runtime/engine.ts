import type { EngineFrame, Sampling, Utterance } from "../../contract/speech.ts";
import type { GeneratorCounts } from "./generator-outcomes.ts";

/**
 * The interface of a speech engine. The consumer pulls frames. An engine synthesizes at most one utterance
 * ahead of the consumer, and the text front end keeps utterances short.
 */
export interface Engine {
  readonly name: string;
  /** The sampling rate of the engine's audio in Hz. */
  readonly rate: number;
  /**
   * The number of tokens for each second of audio at stretch 1. Only an engine that samples has this
   * property, and its utterances have sampling settings.
   */
  readonly tokensPerSecond?: number;
  /** The sampling of requests that do not set sampling options, if it differs from the defaults of arcana. */
  readonly samplingDefaults?: Sampling;
  /** The number of utterances that the engine synthesizes at the same time. Further utterances wait. */
  readonly capacity: number;
  /** The measured number of concurrent streams that the engine synthesizes faster than real time. */
  readonly realTimeStreams?: number;
  /**
   * The longest permitted ratio between the lengths of one phrase of a stream and the phrase before it. A
   * longer phrase would not be ready in time. The value is undefined if the engine has no limit.
   */
  readonly phraseGrowth?: number | undefined;
  /**
   * Whether the next utterance of a stream may start as soon as the current utterance is written, before its
   * audio is consumed.
   */
  readonly worksAhead?: boolean;
  /**
   * Synthesizes one utterance. If the signal aborts, the iteration ends early without an error.
   * @throws Failure `model_failed` if the engine failed after the first audio. A failure before the first
   * audio is retried once.
   * @param onWritten called by an engine that works ahead.
   * @param onBegun called by an engine with processes, at the start of each attempt.
   */
  speak(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten?: OnWritten,
    onBegun?: OnBegun,
  ): AsyncIterable<EngineFrame>;
  /**
   * The variant of the engine, as part of a sentence. The value is undefined if the engine has only one
   * variant.
   */
  readonly variant?: string | undefined;
  /** The number of processes that ended unexpectedly. */
  readonly restarts: number;
  /** Returns whether the engine works, or restarts within its budget. */
  healthy(): boolean;
  /**
   * The reason why the engine does not work at the moment. The value is undefined if the engine works or the
   * reason is unknown.
   */
  notReady?(): string | undefined;
  /** The counts of a generator. */
  readonly counts?: GeneratorCounts;
  close(): Promise<void>;
}

/**
 * Called when the engine has synthesized all audio of an utterance, which may be before the audio was
 * consumed.
 * @param seconds the duration of the audio; undefined if the engine does not know the duration.
 */
export type OnWritten = (seconds?: number) => void;

/**
 * Called when an engine process begins an utterance, after the wait for a free process. The callback returns
 * a function that the engine calls when the process can run the next utterance.
 */
export type OnBegun = () => () => void;

export interface EngineLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface EngineOptions {
  /** The number of engine processes. */
  readonly processes: number;
  readonly log: EngineLog;
}

/** The engine cannot run on this machine. The message names the package to install, or the reason. */
export class EngineMissing extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineMissing";
  }
}
