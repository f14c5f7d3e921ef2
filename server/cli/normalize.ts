import { languageOf, languages } from "../../config/contract/voices.ts";
import type { Command } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { planSpeech } from "../text/planning/plan.ts";

const known = Object.keys(languages);

/** Prints the text that a model tier would send to an engine. */
export const normalizeCommand: Command = {
  name: "normalize",
  summary: "read lines from standard input, and print the words that engines receive",
  options: {
    lang: { value: "LANG", help: `the language of the text: ${known.join(", ")}`, required: true },
  },
  notes: `Example:
  echo 'It costs $9.99/month.' | svc-tts normalize --lang eng
  It costs nine dollars and ninety-nine cents per month.

For languages other than deu, eng, fra and spa, only whole numbers are expanded. Engines receive all other text unchanged.`,
  async run(shell, { lang = "" }) {
    const language = languageOf(lang.toLowerCase());
    if (language === undefined) {
      throw new UsageError(`--lang must be one of ${known.join(", ")}; it is ${JSON.stringify(lang)}.`);
    }
    if (!shell.readLines)
      throw new UsageError("Standard input is not readable; send the text through a pipe.");
    for await (const line of shell.readLines()) shell.print(spoken(line, language));
    return 0;
  },
};

/** Returns the words and the punctuation that an engine receives for this text. */
function spoken(text: string, language: string): string {
  const plan = planSpeech(text, {
    language,
    normalize: true,
    pauses: false,
    phonemes: false,
    inlineStretch: [],
    quickStart: false,
  });
  const words: string[] = [];
  for (const segment of plan) {
    if (segment.kind !== "phrase") continue;
    for (const { before, text: word, after } of segment.tokens) words.push(`${before}${word}${after}`);
  }
  return words.join(" ");
}
