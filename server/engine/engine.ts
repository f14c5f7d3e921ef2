import type { EngineFrame, Utterance } from "../speech.ts";

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
  /**
   * Speaks one utterance. Ends early and without an error when the signal aborts.
   * @throws Failure `model_failed` when the engine broke, and broke again on the one retry that it gets as long as
   * no audio is out.
   */
  speak(utterance: Utterance, signal: AbortSignal): AsyncIterable<EngineFrame>;
  /** Processes that ended by themselves so far. */
  readonly restarts: number;
  /** Up, or coming back up within its restart budget. */
  healthy(): boolean;
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
