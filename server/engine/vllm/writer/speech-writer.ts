import type { Sampling } from "../../../contract/speech.ts";
import type { ServerAddress } from "../server/server-address.ts";

/** One phrase for a model. */
export interface WriteRequest {
  readonly server: ServerAddress;
  readonly text: string;
  /** The model's name of the voice. */
  readonly voice: string;
  readonly sampling: Sampling;
  readonly seed: number | undefined;
  /** Time at which the client's player runs out of audio, in milliseconds of `performance.now`. */
  readonly dueAtMs: number;
  /** It starts a stream, whose client has no audio yet. */
  readonly isFirst: boolean;
  readonly signal: AbortSignal;
  /**
   * Called when all of it is written, before all of it is consumed. The phrase is complete, or was cut at the
   * model's limit.
   */
  readonly onWritten: (isWhole: boolean) => void;
}

/** A kind of model that vLLM serves. */
export interface SpeechWriter {
  /** Hz. */
  readonly rate: number;
  /** Tokens per second of audio. */
  readonly tokensPerSecond: number | undefined;
  /** Seconds of audio that one second of decoding produces. Infinity if vLLM returns audio itself. */
  readonly decoderSpeed: number;
  readonly restarts: number;
  /**
   * Ends early when the signal aborts.
   * @throws GeneratorTrouble
   */
  write(ask: WriteRequest): AsyncGenerator<Int16Array, void, void>;
  /** Checks whether the server writes anything. @throws GeneratorTrouble */
  proves(server: ServerAddress, signal: AbortSignal): Promise<boolean>;
  /**
   * Seconds of audio per second that the slowest of so many concurrent streams gets from vLLM. @throws
   * GeneratorTrouble
   */
  speedOf(streams: number, server: ServerAddress, signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}
