import type { Sampling } from "../../../contract/speech.ts";
import type { ServerAddress } from "../server/server-address.ts";

/** One phrase to be spoken by a model. */
export interface WriteRequest {
  readonly server: ServerAddress;
  readonly text: string;
  /** As the model names it. */
  readonly voice: string;
  readonly sampling: Sampling;
  readonly seed: number | undefined;
  /** When its listener runs dry, in milliseconds of `performance.now`. */
  readonly dueAtMs: number;
  /** It begins a stream, whose listener hears nothing yet. */
  readonly isFirst: boolean;
  readonly signal: AbortSignal;
  /** Called once all of it is written, though not all of it is heard: whether to its end, or cut where the model may write no more. */
  readonly onWritten: (isWhole: boolean) => void;
}

/** A kind of model that vLLM serves. */
export interface SpeechWriter {
  /** Hz. */
  readonly rate: number;
  /** Of its sound, for a second. */
  readonly tokensPerSecond: number | undefined;
  /** Seconds of sound that a second of work makes of what it wrote; Infinity where vLLM makes the sound itself. */
  readonly decoderSpeed: number;
  readonly restarts: number;
  /**
   * Ends early when the signal aborts.
   * @throws GeneratorTrouble
   */
  write(ask: WriteRequest): AsyncGenerator<Int16Array, void, void>;
  /** Whether the server writes anything. @throws GeneratorTrouble */
  proves(server: ServerAddress, signal: AbortSignal): Promise<boolean>;
  /** Seconds of sound a second that the slowest of so many streams at once gets from vLLM. @throws GeneratorTrouble */
  speedOf(streams: number, server: ServerAddress, signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}
