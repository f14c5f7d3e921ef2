import { readFileSync } from "node:fs";

/** A written sentence, and the words that an engine must synthesize for it. */
export type CorpusSentence = readonly [written: string, spoken: string];

/** Reads the sentences of a language (test/golden/normalize/sentences/README.md). */
export function corpusSentences(language: string): CorpusSentence[] {
  const file = new URL(`../golden/normalize/sentences/${language}.tsv`, import.meta.url);
  const [, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [written = "", spoken = ""] = line.split("\t");
    return [written, spoken];
  });
}
