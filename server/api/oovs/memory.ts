import type { ObservedOov } from "../../store/oov-store.ts";
import { type OovBuffer, OovWordSet } from "./buffer.ts";

export interface MemoryOptions {
  /** The highest number of different words that may wait. Further words are dropped. */
  readonly maxWaiting?: number;
  readonly onDropped: (words: number) => void;
}

const usualMaxWaiting = 10_000;

/** Creates a queue in memory. The words are lost when the process ends. */
export function waitInMemory({ maxWaiting = usualMaxWaiting, onDropped }: MemoryOptions): OovBuffer {
  const waiting = new OovWordSet();
  const addWord = (oov: ObservedOov) => {
    if (waiting.size >= maxWaiting && !waiting.has(oov)) onDropped(oov.count);
    else waiting.add(oov);
  };
  return {
    add(words) {
      for (const oov of words) addWord(oov);
    },
    batches: () => (waiting.size > 0 ? 1 : 0),
    async next() {
      if (waiting.size === 0) return undefined;
      const words = waiting.take();
      return {
        words,
        done: async () => undefined,
        putBack() {
          for (const oov of [...words, ...waiting.take()]) addWord(oov);
        },
      };
    },
    close: async () => undefined,
  };
}
