import type { Clock } from "../../../lib/clock.ts";
import { PeriodicTask } from "../../../lib/periodic-task.ts";
import { reportChanges } from "../../store/database/report-changes.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { OovStore } from "../../store/oov-store.ts";
import type { OovBuffer } from "./buffer.ts";
import { sentenceAround } from "./sentence.ts";

/**
 * Records out-of-vocabulary words for review. The recorder never delays a request, and an error of the
 * recorder never fails a request.
 */
export interface OovRecorder {
  /**
   * Records words of a request.
   * @param text the text that contains the words.
   */
  note(key: ApiKey, language: string, words: readonly string[], text: string): void;
  /** Writes the remaining words. */
  close(): Promise<void>;
}

export interface OovRecorderOptions {
  readonly store: OovStore;
  readonly waiting: OovBuffer;
  /** Returns whether the team stores the sentence of each word. */
  readonly keepsSentences: (team: string | undefined) => boolean;
  readonly clock: Clock;
  /** The interval between two writes. */
  readonly writeMs?: number;
  /**
   * The recorder calls this function with an error when a write fails, and with undefined when a write
   * succeeds again.
   */
  readonly onError: (error: Error | undefined) => void;
}

const usualWriteMs = 5_000;

export function createOovRecorder(options: OovRecorderOptions): OovRecorder {
  const { store, waiting, keepsSentences, clock } = options;
  const reportResult = reportChanges(options.onError);

  /** Writes one batch. @returns false if no batch waits. */
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
      // Words that arrive during the writes wait for the next interval. Otherwise the database would receive
      // one transaction after the other without a pause.
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
