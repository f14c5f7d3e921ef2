import type { Clock } from "../../../lib/clock.ts";
import { PeriodicTask } from "../../../lib/periodic-task.ts";
import { reportChanges } from "../../store/database/report-changes.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { OovStore } from "../../store/oov-store.ts";
import type { OovBuffer } from "./buffer.ts";
import { sentenceAround } from "./sentence.ts";

/** Records out-of-vocabulary words for review. It never delays or fails a request. */
export interface OovRecorder {
  /** @param text the text that contains the words. */
  note(key: ApiKey, language: string, words: readonly string[], text: string): void;
  /** Writes the remaining words. */
  close(): Promise<void>;
}

export interface OovRecorderOptions {
  readonly store: OovStore;
  readonly waiting: OovBuffer;
  /** Whether the team stores the sentence of each word. */
  readonly keepsSentences: (team: string | undefined) => boolean;
  readonly clock: Clock;
  /** Interval between two writes. */
  readonly writeMs?: number;
  /** Called with an error when writing fails, and with undefined when it succeeds again. */
  readonly onError: (error: Error | undefined) => void;
}

const usualWriteMs = 5_000;

export function createOovRecorder(options: OovRecorderOptions): OovRecorder {
  const { store, waiting, keepsSentences, clock } = options;
  const reportResult = reportChanges(options.onError);

  /** Writes one batch. @returns whether more batches may wait. */
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
    reportResult(undefined);
    return true;
  };
  const write = async () => {
    try {
      // Words that arrive during the writes wait for the next interval. Otherwise transactions would follow each
      // other without a pause.
      for (let left = waiting.batches(); left > 0 && (await writeNext()); left--);
    } catch (error) {
      reportResult(error as Error);
    }
  };
  const writing = new PeriodicTask(clock, options.writeMs ?? usualWriteMs, write);

  return {
    note({ id, team }, language, words, text) {
      const at = clock.nowMs();
      const withSentence = keepsSentences(team);
      waiting.add(
        words.map((word) => ({
          ...{ keyId: id, team, language, word, count: 1, firstSeen: at, lastSeen: at },
          ...(withSentence && { sentence: sentenceAround(word, text, language) }),
        })),
      );
    },
    async close() {
      await writing.stop();
      await writing.run();
      await waiting.close();
    },
  };
}
