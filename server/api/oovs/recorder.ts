import { type Clock, every } from "../../../lib/clock.ts";
import { reportChanges } from "../../store/database/report-changes.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { OovStore } from "../../store/oov-store.ts";
import type { OovBuffer } from "./buffer.ts";
import { sentenceAround } from "./sentence.ts";

/** Takes down words for review, beside the speech: it never waits and never fails. */
export interface OovRecorder {
  /** @param text in which they stand. */
  note(key: ApiKey, language: string, words: readonly string[], text: string): void;
  /** Writes what is left to write. */
  close(): Promise<void>;
}

export interface OovRecorderOptions {
  readonly store: OovStore;
  readonly waiting: OovBuffer;
  /** Whether the team wants the sentences around its words kept. */
  readonly keepsSentences: (team: string | undefined) => boolean;
  readonly clock: Clock;
  /** How often words are written. */
  readonly writeMs?: number;
  /** Told when words cannot be written, and when they can again (undefined). */
  readonly onTrouble: (error: Error | undefined) => void;
}

const usualWriteMs = 5_000;

export function createOovRecorder(options: OovRecorderOptions): OovRecorder {
  const { store, waiting, keepsSentences, clock } = options;
  const tell = reportChanges(options.onTrouble);
  let writing: Promise<void> | undefined;

  /** @returns whether there may be more. */
  const writeNext = async () => {
    const batch = await waiting.next();
    if (!batch) return false;
    try {
      await store.add(batch.words);
    } catch (error) {
      batch.putBack();
      throw error;
    }
    await batch.done();
    tell(undefined);
    return true;
  };
  const write = async () => {
    try {
      // what comes meanwhile waits for the next time, or each transaction would be followed by another at once
      for (let left = waiting.batches(); left > 0 && (await writeNext()); left--);
    } catch (error) {
      tell(error as Error);
    }
  };
  const writeOnce = () => {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  };
  const stop = every(clock, options.writeMs ?? usualWriteMs, () => void writeOnce());

  return {
    note({ id, team }, language, words, text) {
      const at = clock.nowMs();
      const isKept = keepsSentences(team);
      waiting.add(
        words.map((word) => ({
          ...{ keyId: id, team, language, word, count: 1, firstSeen: at, lastSeen: at },
          ...(isKept && { sentence: sentenceAround(word, text, language) }),
        })),
      );
    },
    async close() {
      stop();
      await writing;
      await writeOnce();
      await waiting.close();
    },
  };
}
