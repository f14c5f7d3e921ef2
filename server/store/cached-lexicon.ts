import type { Clock } from "../../lib/clock.ts";
import { PeriodicTask } from "../../lib/periodic-task.ts";
import { lexiconForm } from "../contract/text/lexicon.ts";
import { reportChanges } from "./database/report-changes.ts";
import type { LexiconTable } from "./lexicon.ts";

/**
 * The lexicons of all teams, cached in memory and kept up to date, so that a request never waits for the
 * database.
 */
export interface CachedLexicon {
  /**
   * Returns the team's entries for the words of this text, by the word in lower case, or undefined if there
   * are none.
   * @param team undefined for a key without one. @param language ISO 639-3.
   */
  find(
    team: string | undefined,
    language: string,
    text: string,
  ): Readonly<Record<string, string>> | undefined;
  /** Whether the team keeps the sentences around out-of-vocabulary words. */
  keepsSentences(team: string | undefined): boolean;
  /** Reads changes immediately. */
  refresh(): Promise<void>;
  close(): void;
}

export interface CachedLexiconOptions {
  readonly table: Pick<LexiconTable, "revision" | "load">;
  readonly intervalMs?: number;
  readonly clock: Clock;
  /**
   * Called with an error when the table becomes unreadable, and with undefined when it is readable again.
   * Until then the entries that were read last apply.
   */
  readonly onError: (error: Error | undefined) => void;
}

const usualIntervalMs = 2_000;
/** A longer text is not searched for words: the model tier gets the team's whole lexicon. */
const searchedCharacters = 20_000;
const words = /\p{L}[\p{L}\p{M}'’\-‐]*/gu;

export function cacheLexicon({ table, intervalMs, clock, onError }: CachedLexiconOptions): CachedLexicon {
  const tell = reportChanges(onError);
  let entries = new Map<string, ReadonlyMap<string, string>>();
  let withSentences: ReadonlySet<string> = new Set();
  let revision: number | undefined;
  const look = async () => {
    try {
      const current = await table.revision();
      if (current !== revision) {
        const loaded = await table.load();
        const groups = Map.groupBy(loaded.entries, ({ team, language }) => placeOf(team, language));
        withSentences = loaded.withSentences;
        entries = new Map(
          [...groups].map(([place, list]) => [
            place,
            new Map(list.map(({ word, phonemes }) => [word, phonemes])),
          ]),
        );
      }
      revision = current;
      tell(undefined);
    } catch (error) {
      revision = undefined; // A database that returns may be another one.
      tell(error as Error);
    }
  };
  const task = new PeriodicTask(clock, intervalMs ?? usualIntervalMs, look);
  return {
    find(team, language, text) {
      const known = entries.get(placeOf(team ?? "", language));
      if (!known) return undefined;
      const found = text.length > searchedCharacters ? [...known] : foundIn(text, known);
      return found.length > 0 ? Object.fromEntries(found) : undefined;
    },
    keepsSentences: (team) => withSentences.has(team ?? ""),
    refresh: () => task.run(),
    close: () => void task.stop(),
  };
}

function foundIn(text: string, known: ReadonlyMap<string, string>): [string, string][] {
  const forms = new Set([...text.matchAll(words)].map(([word]) => lexiconForm(word)));
  return [...forms].flatMap((form): [string, string][] => {
    const phonemes = known.get(form);
    return phonemes === undefined ? [] : [[form, phonemes]];
  });
}

function placeOf(team: string, language: string): string {
  return JSON.stringify([team, language]);
}
