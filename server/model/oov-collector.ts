import { setTimeout as sleep } from "node:timers/promises";
import { encodeFrame } from "../contract/wire.ts";

/**
 * The time for which the end of a stream waits for the words. A dictionary is loaded at most once in a
 * process, so few streams wait.
 */
const longestWaitMs = 10_000;

/**
 * Adds out-of-vocabulary words to a stream. The words are sent between two frames of audio as soon as they
 * are known, or at the end of the stream.
 */
export class OovCollector {
  readonly #found: Promise<void>;
  #frame: Buffer | undefined;

  constructor(found: Promise<readonly string[]>) {
    this.#found = found.then((words) => {
      if (words.length > 0) this.#frame = encodeFrame({ kind: "oovs", words });
    });
  }

  /** Yields the frame with the words once, if the words are known. */
  *take(): Generator<Buffer, void, void> {
    const frame = this.#frame;
    this.#frame = undefined;
    if (frame) yield frame;
  }

  /** Waits for the words, and yields their frame if `take` has not yielded the frame before. */
  async *last(signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
    const waiting = new AbortController();
    const late = sleep(longestWaitMs, undefined, { signal: AbortSignal.any([signal, waiting.signal]) }).catch(
      () => undefined, // The timer was canceled: the words are known, or the client has disconnected.
    );
    await Promise.race([this.#found, late]);
    waiting.abort();
    yield* this.take();
  }
}
