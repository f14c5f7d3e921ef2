import { languageOf, languages } from "../../config/contract/voices.ts";
import type { Command } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { planSpeech } from "../text/planning/plan.ts";

const known = Object.keys(languages);

/** Prints the text that the model tiers would give to an engine. */
export const normalizeCommand: Command = {
  name: "normalize",
  summary: "read lines from standard input and print the words that engines receive",
  options: {
    lang: { value: "LANG", help: `the language of the text: ${known.join(", ")}`, required: true },
  },
  notes: `Example:
  echo 'It costs $9.99/month.' | svc-tts normalize --lang eng
  It costs nine dollars and ninety-nine cents per month.

Languages other than deu, eng, fra and spa have rules for whole numbers only; engines read the rest as it is written.`,
  async run(shell, { lang = "" }) {
    const language = languageOf(lang.toLowerCase());
    if (language === undefined) {
      throw new UsageError(
        `svc-tts normalize: --lang ${JSON.stringify(lang)} is not a language of this server; use one of ${known.join(", ")}.`,
      );
    }
    if (!shell.readLines) throw new UsageError("svc-tts normalize: standard input cannot be read.");
    for await (const line of shell.readLines()) shell.print(spoken(line, language));
    return 0;
  },
};

/** The words of a request with this text, with the punctuation that engines receive. */
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
    for (const { before, text: said, after } of segment.tokens) words.push(`${before}${said}${after}`);
  }
  return words.join(" ");
}
