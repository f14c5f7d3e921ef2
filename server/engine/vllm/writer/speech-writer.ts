import type { Sampling } from "../../../contract/speech.ts";
import type { ModelVoice } from "../model/manifest-schema.ts";
import type { ServerAddress } from "../server/server-address.ts";

/** The request for one phrase. */
export interface WriteRequest {
  readonly server: ServerAddress;
  /** The text, or its phonemes if the model reads phonemes. */
  readonly text: string;
  readonly voice: ModelVoice;
  readonly sampling: Sampling;
  readonly seed: number | undefined;
  /** The time at which the client's player runs out of audio, in milliseconds of `performance.now`. */
  readonly dueAtMs: number;
  /** Whether the phrase starts a stream. The client of a new stream has no audio yet. */
  readonly isFirst: boolean;
  readonly signal: AbortSignal;
  /**
   * Called when the phrase is written, which may be before its audio is consumed. `isWhole` is false if the
   * model's limit cut the phrase.
   */
  readonly onWritten: (isWhole: boolean) => void;
}

/** Synthesizes phrases with a model that vLLM serves. There is one implementation for each kind of model. */
export interface SpeechWriter {
  /** The sampling rate in Hz. */
  readonly rate: number;
  /** The number of tokens for each second of audio. The value is undefined if vLLM returns audio. */
  readonly tokensPerSecond: number | undefined;
  /**
   * The seconds of audio that one second of decoding produces. The value is infinite if vLLM returns audio.
   */
  readonly decoderSpeed: number;
  readonly restarts: number;
  /**
   * Synthesizes one phrase. If the signal aborts, the iteration ends early.
   * @throws GeneratorError
   */
  write(request: WriteRequest): AsyncGenerator<Int16Array, void, void>;
  /**
   * Checks whether vLLM returns a token or audio.
   * @throws GeneratorError
   */
  proves(server: ServerAddress, signal: AbortSignal): Promise<boolean>;
  /**
   * Measures the speed of vLLM for a number of concurrent streams.
   * @returns the seconds of audio per second of the slowest stream.
   * @throws GeneratorError
   */
  speedOf(streams: number, server: ServerAddress, signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}
