import { setTimeout as sleep } from "node:timers/promises";
import { encodeFrame } from "../contract/wire.ts";

/** The end of a stream waits this long for them: once in a process, when the dictionary of its language is being loaded. */
const patienceMs = 10_000;

/** Out-of-vocabulary words on their way into the stream: between two of its frames once they are found, at its end at the latest. */
export class OovCollector {
  readonly #found: Promise<void>;
  #frame: Buffer | undefined;

  constructor(found: Promise<readonly string[]>) {
    this.#found = found.then((words) => {
      if (words.length > 0) this.#frame = encodeFrame({ kind: "oovs", words });
    });
  }

  /** The frame, once, when it is there. */
  *take(): Generator<Buffer, void, void> {
    const frame = this.#frame;
    this.#frame = undefined;
    if (frame) yield frame;
  }

  async *last(signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
    const patience = new AbortController();
    const late = sleep(patienceMs, undefined, { signal: AbortSignal.any([signal, patience.signal]) }).catch(
      () => undefined, // cut short: either all is found, or nobody is there to be told
    );
    await Promise.race([this.#found, late]);
    patience.abort();
    yield* this.take();
  }
}
