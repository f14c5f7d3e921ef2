import { expect, test } from "vitest";
import { languages } from "../../../config/contract/voices.ts";
import { coreOf } from "../../../server/contract/text/word-parts.ts";
import { normalize } from "../../../server/text/normalize/normalize.ts";
import { readTokens, type WrittenToken } from "../../../server/text/tokens.ts";
import { corpusSentences } from "../../support/normalize-corpus.ts";
import { seededRandom } from "../../support/seed.ts";

function tokens(text: string, language: string): WrittenToken[] {
  return Array.from(normalize(readTokens([{ kind: "text", text, stretch: 1 }]), language)).flatMap((item) =>
    item.kind === "token" ? [item.token] : [],
  );
}

function spokenText(text: string, language: string): string {
  return tokens(text, language)
    .map(({ before, text: spoken, after }) => `${before}${spoken}${after}`)
    .join(" ");
}

const withRules = ["eng", "deu", "fra", "spa"];

for (const language of withRules) {
  test.each(corpusSentences(language))(`normalize in ${language} speaks %j as %j`, (written, spoken) => {
    expect(spokenText(written, language)).toBe(spoken);
  });
}

test.each(withRules)("the golden file of %s has at least 150 different sentences", (language) => {
  const written = corpusSentences(language).map(([sentence]) => sentence);
  expect(new Set(written).size).toBe(written.length);
  expect(written.length).toBeGreaterThanOrEqual(150);
});

const signs = [..."/-–−:.,+=×÷<>±≥≤≠≈→·*%&@#^|~√∞$€£¥", "->", ">=", "!=", " - ", " + ", " ≥ ", " → ", " √"];

/** Returns up to five digits, which are read as one number. */
function digits(random: () => number): string {
  return String(Math.floor(random() * 10 ** (1 + Math.floor(random() * 5))));
}

/** If a group of digits changes, the spoken text must change too. This shows that no digit is omitted. */
test.each(Object.keys(languages))("normalize in %s speaks every group of digits", (language) => {
  const random = seededRandom(`digits ${language}`).next;
  for (let round = 0; round < 400; round++) {
    const groups = Array.from({ length: 2 + Math.floor(random() * 2) }, () => digits(random));
    const between = groups.map(() => signs[Math.floor(random() * signs.length)] ?? "");
    const write = (at: number, other: string) =>
      groups.map((group, i) => (i === 0 ? "" : between[i]) + (i === at ? other : group)).join("");
    const whole = spokenText(write(-1, ""), language);
    for (const [at, group] of groups.entries()) {
      const spoken = spokenText(write(at, `${group}7`), language);
      expect(spoken, `${JSON.stringify(write(-1, ""))}, group ${at}`).not.toBe(whole);
    }
  }
});

/** The test excludes dots and commas, because they may be thousands separators. */
test.each(withRules)("normalize in %s speaks every sign between two numbers", (language) => {
  const random = seededRandom(`signs ${language}`).next;
  for (const sign of signs.filter((each) => !/^[.,]$/u.test(each))) {
    for (let round = 0; round < 20; round++) {
      const [left, right] = [`9${digits(random)}`, `1${digits(random)}`];
      const words = (text: string) =>
        tokens(text, language)
          .map((token) => token.text)
          .join(" ");
      const spoken = words(left + sign + right);
      expect(spoken, `${left}${sign}${right}`).not.toBe(words(`${left} ${right}`));
    }
  }
});

const marks = [
  ..."()[]'\"!?;…",
  "x",
  "Kg",
  "km",
  "USD",
  "é",
  "IV",
  "½",
  "²",
  "⁻³",
  "№",
  "∑",
  "⊕",
  "₿",
  "€",
  "8",
  "12.5",
  "-",
];

/** Matches characters that are not spoken: punctuation and pictographs. */
const wordless = /^[\p{P}\p{So}\p{Sk}\p{M}\p{Z}\p{C}]*$/u;

test.each(withRules)("normalize in %s speaks every written token that is not punctuation", (language) => {
  const random = seededRandom(`tokens ${language}`).next;
  for (let round = 0; round < 1_500; round++) {
    const length = 1 + Math.floor(random() * 6);
    const text = Array.from({ length }, () => {
      const pool = random() < 0.5 ? marks : signs;
      return pool[Math.floor(random() * pool.length)] ?? "";
    }).join("");
    const written = Array.from(readTokens([{ kind: "text", text, stretch: 1 }])).flatMap((item) =>
      item.kind === "token" ? [item.token] : [],
    );
    const spoken = tokens(text, language);
    const named = spoken.map((token) => token.written).join(" ");
    for (const token of spoken) expect(token.text, JSON.stringify(text)).toMatch(/[\p{L}]/u);
    for (const token of written) {
      if (!wordless.test(token.text)) expect(named.split(" "), JSON.stringify(text)).toContain(token.written);
    }
  }
});

test.each([
  `a${".".repeat(9_998)}a`,
  ".".repeat(10_000),
  `${"😀".repeat(4_000)}!`,
  `${"!".repeat(5_000)}a${"!".repeat(5_000)}`,
])("coreOf reads each character of a word at most twice", (word) => {
  let reads = 0;
  const counted = {
    length: word.length,
    codePointAt: (at: number) => {
      reads++;
      return word.codePointAt(at);
    },
  };
  const [from, to] = coreOf(counted);
  expect(reads).toBeLessThanOrEqual(2 * word.length + 2);
  expect(word.slice(0, from) + word.slice(to)).toMatch(/^\p{P}*$/u);
});

test.each(["a.", "?! ", ". ", "1 ", "$ ", "a1/", "!", "😀 "])(
  "readTokens reads a megabyte of %j in small steps",
  (unit) => {
    const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
    let characters = 0;
    let tokensSinceRest = 0;
    let mostWithoutRest = 0;
    for (const item of readTokens([{ kind: "text", text, stretch: 1 }])) {
      if (item.kind === "rest") tokensSinceRest = 0;
      if (item.kind !== "token") continue;
      mostWithoutRest = Math.max(mostWithoutRest, ++tokensSinceRest);
      const { before, text: core, after } = item.token;
      characters = Math.max(characters, before.length + core.length + after.length);
    }
    expect(mostWithoutRest).toBeLessThanOrEqual(5_000);
    expect(characters).toBeLessThanOrEqual(100 + 2 * 60 + 100);
  },
);
