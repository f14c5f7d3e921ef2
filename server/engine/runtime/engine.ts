import type { EngineFrame, Utterance } from "../../contract/speech.ts";
import type { GeneratorCounts } from "./generator-counts.ts";

/**
 * What the model tier knows of a speech engine. Frames are pulled: an engine works only as far ahead of its
 * listener as one utterance, which the text front end keeps short.
 */
export interface Engine {
  readonly name: string;
  /** Hz, of all its audio. */
  readonly rate: number;
  /** Tokens that a second of its audio takes, at stretch 1, where it samples them; an utterance then says how. */
  readonly tokensPerSecond?: number;
  /** Utterances that it speaks at once; more wait in line. */
  readonly capacity: number;
  /** Streams at once that it keeps faster than speech, where that was measured. */
  readonly realTimeStreams?: number;
  /** Whether the next utterance of a stream may be begun as soon as this one is written, though it is still heard. */
  readonly worksAhead?: boolean;
  /**
   * Speaks one utterance. Ends early and without an error when the signal aborts.
   * @throws Failure `model_failed` when the engine broke, and broke again on the one retry that it gets as long as
   * no audio is out.
   * @param onWritten called by an engine that works ahead.
   */
  speak(utterance: Utterance, signal: AbortSignal, onWritten?: () => void): AsyncIterable<EngineFrame>;
  /** Which of its ways it speaks in, where it has several: a sentence's part, for people. */
  readonly variant?: string | undefined;
  /** Processes that ended by themselves so far. */
  readonly restarts: number;
  /** Up, or coming back up within its restart budget. */
  healthy(): boolean;
  /** Why it cannot speak for the moment, where it can tell. */
  notReady?(): string | undefined;
  /** What it did so far, where it is a language model. */
  readonly counts?: GeneratorCounts;
  close(): Promise<void>;
}

export interface EngineLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface EngineOptions {
  /** Number of engine processes. */
  readonly processes: number;
  readonly log: EngineLog;
}

/** The engine cannot run on this machine; the message says what to install. */
export class EngineMissing extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineMissing";
  }
}
