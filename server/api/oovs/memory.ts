import type { ObservedOov } from "../../store/oov-store.ts";
import { type OovBuffer, OovWordSet } from "./buffer.ts";

export interface MemoryOptions {
  /** Number of different words that may wait. Further ones are dropped. */
  readonly maxWaiting?: number;
  readonly onDropped: (words: number) => void;
}

const usualMaxWaiting = 10_000;

/** Words wait in this process, and are lost with it. */
export function waitInMemory({ maxWaiting = usualMaxWaiting, onDropped }: MemoryOptions): OovBuffer {
  const waiting = new OovWordSet();
  const take = (met: ObservedOov) => {
    if (waiting.size >= maxWaiting && !waiting.has(met)) onDropped(met.count);
    else waiting.add(met);
  };
  return {
    add(words) {
      for (const met of words) take(met);
    },
    batches: () => (waiting.size > 0 ? 1 : 0),
    async next() {
      if (waiting.size === 0) return undefined;
      const words = waiting.take();
      return {
        words,
        done: async () => undefined,
        putBack() {
          for (const met of [...words, ...waiting.take()]) take(met);
        },
      };
    },
    close: async () => undefined,
  };
}
