import { setTimeout as sleep } from "node:timers/promises";
import { encodeFrame } from "../contract/wire.ts";

/**
 * The end of a stream waits this long for the words. The wait occurs once per process, while the dictionary
 * of the language is loaded.
 */
const patienceMs = 10_000;

/**
 * Sends out-of-vocabulary words in the stream: between two frames once they are found, and at the end at the
 * latest.
 */
export class OovCollector {
  readonly #found: Promise<void>;
  #frame: Buffer | undefined;

  constructor(found: Promise<readonly string[]>) {
    this.#found = found.then((words) => {
      if (words.length > 0) this.#frame = encodeFrame({ kind: "oovs", words });
    });
  }

  /** Returns the frame, once, when it is complete. */
  *take(): Generator<Buffer, void, void> {
    const frame = this.#frame;
    this.#frame = undefined;
    if (frame) yield frame;
  }

  async *last(signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
    const patience = new AbortController();
    const late = sleep(patienceMs, undefined, { signal: AbortSignal.any([signal, patience.signal]) }).catch(
      () => undefined, // The stream was aborted: either all words are found, or no client receives them.
    );
    await Promise.race([this.#found, late]);
    patience.abort();
    yield* this.take();
  }
}
