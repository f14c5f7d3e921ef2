import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { normalize } from "../../../server/text/normalize/normalize.ts";
import { readTokens } from "../../../server/text/tokens.ts";

interface Row {
  readonly category: string;
  readonly written: string;
  readonly spoken: string;
}

function gold(language: string): Row[] {
  const file = new URL(`../../golden/normalize/${language}.tsv`, import.meta.url);
  const [, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [category = "", written = "", spoken = ""] = line.split("\t");
    return { category, written, spoken };
  });
}

function say(text: string, language: string): string {
  const items = normalize(readTokens([{ kind: "text", text, stretch: 1 }]), language);
  return Array.from(items, (item) => (item.kind === "token" ? item.token.text : "")).join(" ");
}

for (const language of ["eng", "spa", "fra", "deu"]) {
  test.each(gold(language))(`${language} $category: $written`, ({ written, spoken }) => {
    expect(say(written, language)).toBe(spoken);
  });
}
