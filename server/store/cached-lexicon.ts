import type { Clock } from "../../lib/clock.ts";
import { PeriodicTask } from "../../lib/periodic-task.ts";
import { lexiconForm } from "../contract/text/lexicon.ts";
import { reportChanges } from "./database/report-changes.ts";
import type { LexiconTable } from "./lexicon.ts";

/**
 * The lexicons of all teams in memory. The cache polls the database for changes, so a request never waits for
 * the database.
 */
export interface CachedLexicon {
  /**
   * Returns the team's entries for the words of a text, by the word in lower case. Returns undefined if the
   * team has no entry for these words.
   * @param team undefined for a key without a team.
   * @param language an ISO 639-3 code.
   */
  find(
    team: string | undefined,
    language: string,
    text: string,
  ): Readonly<Record<string, string>> | undefined;
  /** Returns whether the team keeps the sentences around out-of-vocabulary words. */
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
   * While the table is unreadable, the last entries apply.
   */
  readonly onError: (error: Error | undefined) => void;
}

const defaultIntervalMs = 2_000;
/**
 * The length up to which a text is searched for words. For a longer text, the model tier gets the team's
 * whole lexicon.
 */
const searchedCharacters = 20_000;
const words = /\p{L}[\p{L}\p{M}'’\-‐]*/gu;

export function cacheLexicon({ table, intervalMs, clock, onError }: CachedLexiconOptions): CachedLexicon {
  const report = reportChanges(onError);
  let entries = new Map<string, ReadonlyMap<string, string>>();
  let withSentences: ReadonlySet<string> = new Set();
  let revision: number | undefined;
  const readChanges = async () => {
    try {
      const current = await table.revision();
      if (current !== revision) {
        const loaded = await table.load();
        const groups = Map.groupBy(loaded.entries, ({ team, language }) => groupOf(team, language));
        withSentences = loaded.withSentences;
        entries = new Map(
          [...groups].map(([group, list]) => [
            group,
            new Map(list.map(({ word, phonemes }) => [word, phonemes])),
          ]),
        );
      }
      revision = current;
      report(undefined);
    } catch (error) {
      revision = undefined; // A database that is available again may be a different database.
      report(error as Error);
    }
  };
  const task = new PeriodicTask(clock, intervalMs ?? defaultIntervalMs, readChanges);
  return {
    find(team, language, text) {
      const lexicon = entries.get(groupOf(team ?? "", language));
      if (!lexicon) return undefined;
      const found = text.length > searchedCharacters ? [...lexicon] : entriesIn(text, lexicon);
      return found.length > 0 ? Object.fromEntries(found) : undefined;
    },
    keepsSentences: (team) => withSentences.has(team ?? ""),
    refresh: () => task.run(),
    close: () => void task.stop(),
  };
}

function entriesIn(text: string, lexicon: ReadonlyMap<string, string>): [string, string][] {
  const forms = new Set([...text.matchAll(words)].map(([word]) => lexiconForm(word)));
  return [...forms].flatMap((form): [string, string][] => {
    const phonemes = lexicon.get(form);
    return phonemes === undefined ? [] : [[form, phonemes]];
  });
}

function groupOf(team: string, language: string): string {
  return JSON.stringify([team, language]);
}
