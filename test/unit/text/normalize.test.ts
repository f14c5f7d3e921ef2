import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { normalize } from "../../../server/text/normalize/normalize.ts";
import { readTokens, type WrittenToken } from "../../../server/text/tokens.ts";
import { randomText } from "../../support/audio/texts.ts";
import { seededRandom } from "../../support/seed.ts";

interface Row {
  readonly category: string;
  readonly written: string;
  readonly spoken: string;
}

function goldRows(language: string): Row[] {
  const file = new URL(`../../golden/normalize/${language}.tsv`, import.meta.url);
  const [, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [category = "", written = "", spoken = ""] = line.split("\t");
    return { category, written, spoken };
  });
}

function* read(text: string, language: string): Generator<WrittenToken> {
  for (const item of normalize(readTokens([{ kind: "text", text, stretch: 1 }]), language)) {
    if (item.kind === "token") yield item.token;
  }
}

function spokenText(text: string, language: string): string {
  return Array.from(read(text, language), (token) => token.text).join(" ");
}

/** Returns each written word with its spoken words and the remaining punctuation. */
function alignment(text: string, language: string): string[] {
  return Array.from(
    read(text, language),
    ({ written, before, text: spoken, after }) => `${written}: ${before}${spoken}${after}`,
  );
}

const languages = ["eng", "spa", "fra", "deu"];

for (const language of languages) {
  test.each(goldRows(language))(
    `normalize in ${language} speaks the $category $written as $spoken`,
    ({ written, spoken }) => {
      expect(spokenText(written, language)).toBe(spoken);
    },
  );
}

test.each(languages)("the golden file of %s has at least 150 rows", (language) => {
  expect(goldRows(language).length).toBeGreaterThanOrEqual(150);
});

test.each([
  ["eng", "$5 million, then.", ["$5: five", "million: million dollars,", "then: then."]],
  ["eng", "On Nov. 20, 2026.", ["On: On", "Nov: November", "20: twentieth,", "2026: twenty twenty-six."]],
  ["eng", "at 3:30 p.m. Then", ["at: at", "3:30: three thirty", "p.m.: P M.", "Then: Then"]],
  [
    "eng",
    "Call (555) 123-4567!",
    ["Call: Call", "555: five five five,", "123-4567: one two three,", "123-4567: four five six seven!"],
  ],
  ["eng", "Hi 😀. Bye", ["Hi: Hi.", "Bye: Bye"]],
  ["eng", "Dr. Lee (age 5)", ["Dr: doctor", "Lee: Lee", "age: (age", "5: five)"]],
  ["eng", "Elm Dr. It is", ["Elm: Elm", "Dr: drive.", "It: It", "is: is"]],
  ["eng", "€ 5 each", ["€: five", "5: euros", "each: each"]],
  ["eng", "5\n\nkm", ["5: five", "km: km"]],
  ["eng", "Hi 😀\n\nBye", ["Hi: Hi", "Bye: Bye"]],
  ["fra", "1 234,50 €.", ["1: mille", "234,50: deux cent trente-quatre", "€: euros cinquante."]],
  ["deu", "3,50 €", ["3,50: drei", "€: Euro fünfzig"]],
  ["deu", "1 000 000 Euro", ["1: eine", "000 000: Million", "Euro: Euro"]],
  ["deu", "z. B. am 3. Mai.", ["z: zum", "B: Beispiel", "am: am", "3: dritten", "Mai: Mai."]],
  ["spa", "EE. UU. ganó", ["EE: Estados", "UU: Unidos", "ganó: ganó"]],
])("normalize in %s assigns the spoken words of %j to the written words", (language, text, words) => {
  expect(alignment(text, language)).toEqual(words);
});

test.each([
  ["ita", "21 gatti e 1.234 cani", "ventuno gatti e milleduecentotrentaquattro cani"],
  ["por", "1.234.567", "1234567"],
  ["nld", "3,5", "3,5"],
  ["pol", "am 3. maja", "am 3 maja"],
  ["swe", "007", "007"],
  ["jpn", "21", "21"],
  ["constructor", "21", "21"],
])("normalize in %s, which has no rules for it, speaks %j as %j", (language, text, spoken) => {
  expect(spokenText(text, language)).toBe(spoken);
});

test.each([...languages, "ita"])(
  "normalize in %s accepts any Unicode, with word indices in order and within the text",
  (language) => {
    const random = seededRandom(`any Unicode ${language}`).next;
    for (let round = 0; round < 500; round++) {
      const text = randomText(random);
      const written = Array.from(readTokens([{ kind: "text", text, stretch: 1 }]));
      const tokens = Array.from(read(text, language));
      const words = tokens.map(({ word }) => word);
      expect(words).toEqual(words.toSorted((a, b) => a - b));
      expect(words.at(-1) ?? -1).toBeLessThan(written.length);
      const spoken = tokens.map((token) => token.text);
      expect(spoken).not.toContain("");
      expect(spoken.join(" "), JSON.stringify(text)).not.toMatch(
        language === "ita" ? /undefined|NaN/u : /\p{N}|undefined|NaN/u,
      );
    }
  },
);

test.each(languages)(
  "normalize in %s expands every digit between signs and letters in any order",
  (language) => {
    const random = seededRandom(`digits, signs and letters ${language}`).next;
    const pieces = [
      ..."0123456789.,:;/-–+$€£%°#@&*()' hXIVkmepu½²",
      "km",
      "Mio",
      "st",
      "er",
      "h",
      "º",
      "janv",
      "May",
      "spell(",
    ];
    for (let round = 0; round < 1_500; round++) {
      const length = 1 + Math.floor(random() * 14);
      const text = Array.from({ length }, () => pieces[Math.floor(random() * pieces.length)]).join("");
      expect(spokenText(text, language), JSON.stringify(text)).not.toMatch(/\p{N}|undefined|NaN/u);
    }
  },
);

test.each(languages)("normalize in %s does not change a normalized text", (language) => {
  const plain = goldRows(language).filter(
    ({ category, spoken }) => category === "cardinal" || (category === "plain" && spoken !== ""),
  );
  for (const { spoken } of plain) expect(spokenText(spoken, language)).toBe(spoken);
});

test("normalize reads names of object properties as ordinary words", () => {
  const text =
    "constructor toString $constructor 5 valueOf 5constructor hasOwnProperty. __proto__ #constructor 5 __proto__";
  for (const language of languages)
    expect(spokenText(text, language)).not.toMatch(/native|object|undefined/u);
});

const hostile: readonly (readonly [string, string])[] = [
  ["one long number", "1".repeat(20_000)],
  ["one number with many groups", "1.234,".repeat(3_500)],
  ["numbers with spaces", "1 234 ".repeat(3_500)],
  ["letters with dots", "a.".repeat(10_000)],
  ["times and dates", "11/11/11:11-".repeat(1_800)],
  ["addresses", "a@a.a/".repeat(3_500)],
  ["open spells", "spell( ".repeat(3_000)],
  ["capitals", "XIV ".repeat(5_000)],
  ["signs", "+-=*/".repeat(4_000)],
];

/** The largest number of words that a rule reads ahead. */
const lookahead = 9;

test.each(hostile)(
  "normalize reads %s word by word, and looks ahead only by a limited number of words",
  (_name, text) => {
    for (const language of languages) {
      let wordsRead = 0;
      let readBefore = 0;
      let wordsReturned = 0;
      function* counted() {
        for (const item of readTokens([{ kind: "text", text, stretch: 1 }])) {
          if (item.kind === "token") wordsRead++;
          yield item;
        }
      }
      const words: number[] = [];
      let longest = 0;
      let mostRead = 0;
      for (const item of normalize(counted(), language)) {
        if (item.kind !== "token") continue;
        wordsReturned++;
        longest = Math.max(longest, item.token.text.length);
        mostRead = Math.max(mostRead, wordsRead - readBefore);
        readBefore = wordsRead;
        words.push(item.token.word);
      }
      expect(longest).toBeLessThan(2_000);
      // A rule reads the words that it joins, and looks ahead. A rule that scanned the rest of the text would
      // read all words at once.
      expect(mostRead).toBeLessThanOrEqual(3 * lookahead);
      expect(words.every((word, i) => word >= (words[i - 1] ?? 0))).toBe(true);
      expect(wordsReturned).toBeLessThanOrEqual(wordsRead);
    }
  },
);

test.each([
  ["eng", "The sun. Night falls.", "The sun Night falls"],
  ["eng", "They sat. Evening came.", "They sat Evening came"],
  ["eng", "We met on Sat. morning.", "We met on Saturday morning"],
  ["deu", "Di. Vormittag", "Dienstag Vormittag"],
])("%s: a part of the day after %j shows a weekday only inside a sentence", (language, text, spoken) => {
  expect(spokenText(text, language)).toBe(spoken);
});
