import type { ApiKey } from "../store/key.ts";
import type { MetWord, OovStore } from "../store/oov-store.ts";
import { tellOnce } from "../store/trouble.ts";

/** Takes down words for review, beside the speech: it never waits and never fails. */
export interface OovRecorder {
  note(key: ApiKey, language: string, words: readonly string[]): void;
  /** Writes what is left to write. */
  close(): Promise<void>;
}

export interface OovRecorderOptions {
  readonly store: OovStore;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** How often words are written. */
  readonly writeMs?: number;
  /** Different words that may wait to be written; more are dropped. */
  readonly maxWaiting?: number;
  readonly onDropped: (words: number) => void;
  /** Told when words cannot be written, and when they can again (undefined). */
  readonly onTrouble: (error: Error | undefined) => void;
}

const usualWriteMs = 5_000;
const usualMaxWaiting = 10_000;

export function createOovRecorder(options: OovRecorderOptions): OovRecorder {
  const { store, now, maxWaiting = usualMaxWaiting, onDropped } = options;
  const tell = tellOnce(options.onTrouble);
  const waiting = new Map<string, MetWord>();
  let writing: Promise<void> | undefined;

  const take = (met: MetWord) => {
    const place = JSON.stringify([met.keyId, met.language, met.word]);
    const before = waiting.get(place);
    if (!before && waiting.size >= maxWaiting) onDropped(met.count);
    else if (!before) waiting.set(place, met);
    else waiting.set(place, { ...met, count: before.count + met.count, firstSeen: before.firstSeen });
  };
  const write = async () => {
    if (waiting.size === 0) return;
    const batch = [...waiting.values()];
    waiting.clear();
    try {
      await store.add(batch);
      tell(undefined);
    } catch (error) {
      tell(error as Error);
      const since = [...waiting.values()];
      waiting.clear();
      for (const met of [...batch, ...since]) take(met);
    }
  };
  const writeOnce = () => {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  };
  const timer = setInterval(() => void writeOnce(), options.writeMs ?? usualWriteMs).unref();

  return {
    note({ id, team }, language, words) {
      const at = now();
      for (const word of words) {
        take({ keyId: id, team, language, word, count: 1, firstSeen: at, lastSeen: at });
      }
    },
    async close() {
      clearInterval(timer);
      await writing;
      await writeOnce();
    },
  };
}
