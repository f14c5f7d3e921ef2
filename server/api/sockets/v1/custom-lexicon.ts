import { Failure } from "../../../contract/errors.ts";
import type { Invocation } from "../../../contract/speech.ts";
import { lexiconWord } from "../../../contract/text/lexicon.ts";
import { longestPhonemes } from "../../../contract/text/phonemes.ts";
import { readXSampa } from "../../../contract/text/x-sampa.ts";
import type { SynthesisParameters } from "./schema.ts";

/** The highest number of entries of a custom lexicon. Published clients document this number. */
const mostEntries = 500;

type Entries = SynthesisParameters["customLexicon"];
type Entry = Entries[number];

/**
 * Converts the custom lexicon of a context to the form of an invocation. If a word has several entries, the
 * last entry counts.
 * @returns the lexicon, or undefined without entries.
 * @throws Failure `invalid_request` if an entry is invalid.
 */
export function readCustomLexicon(entries: Entries): Invocation["lexicon"] {
  if (entries.length === 0) return undefined;
  if (entries.length > mostEntries) {
    throw invalid(
      "/customLexicon",
      `customLexicon has ${entries.length} entries; the limit is ${mostEntries}.`,
    );
  }
  return Object.fromEntries(entries.map((entry, at) => [readSpelling(entry, at), readSounds(entry, at)]));
}

function readSpelling({ spelling }: Entry, at: number): string {
  const word = lexiconWord(spelling);
  if (word !== undefined) return word;
  throw invalidEntry(at, "spelling", "must be one word of letters with at most 60 characters");
}

function readSounds({ pronunciation }: Entry, at: number): string {
  const reading = readXSampa(pronunciation);
  if ("fault" in reading) throw invalidEntry(at, "pronunciation", problemOf(reading.fault));
  if (reading.phonemes.length <= longestPhonemes) return reading.phonemes;
  throw invalidEntry(at, "pronunciation", "is too long for one word");
}

function problemOf(fault: Extract<ReturnType<typeof readXSampa>, { fault: unknown }>["fault"]): string {
  switch (fault.kind) {
    case "empty":
      return "must contain at least one sound";
    case "stress-mark":
      return "has a stress mark without a vowel after it";
    case "no-sound":
      return `contains "${fault.sign}", which is not an English sound in X-SAMPA`;
  }
}

function invalidEntry(at: number, field: keyof Entry & string, problem: string): Failure {
  return invalid(`/customLexicon/${at}/${field}`, `customLexicon[${at}].${field} ${problem}.`);
}

function invalid(pointer: string, detail: string): Failure {
  return new Failure("invalid_request", detail, { fields: [{ pointer, detail }] });
}
