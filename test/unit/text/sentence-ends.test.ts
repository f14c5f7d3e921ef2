import { expect, test } from "vitest";
import { languages } from "../../../config/contract/voices.ts";
import { sentenceEnds } from "../../../server/contract/text/sentence-ends.ts";
import { seededRandom } from "../../support/seed.ts";

/** Returns the text with a bar at each end of a sentence. */
function marked(text: string, language = "eng", commas = false): string {
  const ends = sentenceEnds(text, { language, commas });
  return [...ends, text.length].map((end, at) => text.slice(ends[at - 1] ?? 0, end)).join("|");
}

test.each([
  ["Hello.", "Hello."],
  ["Hello. ", "Hello.| "],
  ["Hello.\n", "Hello.|\n"],
  ["Hello! How are you? Fi", "Hello!| How are you?| Fi"],
  ["Take 2.5 ml. ", "Take 2.5 ml.| "],
  ["Take 2.", "Take 2."],
  ["It costs 2. ", "It costs 2.| "],
  ["Dr. Smith, e.g. he", "Dr. Smith, e.g. he"],
  ["J. Smith and I. We", "J. Smith and I.| We"],
  ["The U.S. Army came. It", "The U.S. Army came.| It"],
  ["Milk, tea etc. ", "Milk, tea etc. "],
  ["Milk, tea etc. are", "Milk, tea etc. are"],
  ["Milk, tea etc. A", "Milk, tea etc.| A"],
  ["Well... ", "Well... "],
  ["Well... maybe", "Well... maybe"],
  ["Well… Maybe", "Well…| Maybe"],
  ["“Really?” he", "“Really?” he"],
  ["“Really?” He", "“Really?”| He"],
  ["“Really?” ", "“Really?” "],
  ["She said “Go.” ", "She said “Go.”| "],
  ["Bonjour ! Oui", "Bonjour !| Oui"],
  ["First line\n\nSecond", "First line|\n\nSecond"],
  ["One line\nnext", "One line\nnext"],
  ["", ""],
  ["... ", "... "],
])("sentenceEnds divides %j into %j", (text, expected) => {
  expect(marked(text)).toBe(expected);
});

test.each([
  ["你好。再见。", "cmn", "你好。|再见。"],
  ["「你好。」他说", "cmn", "「你好。」|他说"],
  ["元気ですか？はい", "jpn", "元気ですか？|はい"],
  ["क्या। हाँ। ", "hin", "क्या।| हाँ।| "],
  ["هل أنت بخير؟ نعم", "ara", "هل أنت بخير؟| نعم"],
  ["Am 3. Oktober kam er. Er", "deu", "Am 3. Oktober kam er.| Er"],
])("sentenceEnds divides %j in %s into %j", (text, language, expected) => {
  expect(marked(text, language)).toBe(expected);
});

test("sentenceEnds also divides at commas if requested, but not inside a number", () => {
  expect(marked("Yes, it is 1,000.5, no", "eng", true)).toBe("Yes,| it is 1,000.5,| no");
  expect(marked("Yes, it is")).toBe("Yes, it is");
});

const words = "Hello Dr. etc. e.g. 2.5 3. no you! “Go?” me... 你好。".split(" ");

test.each(Object.keys(languages))("sentenceEnds in %s keeps each end when more text arrives", (language) => {
  const random = seededRandom(`sentence ends ${language}`);
  for (let round = 0; round < 100; round++) {
    let text = "";
    let previous: number[] = [];
    for (let piece = 0; piece < 12; piece++) {
      text += [...words, " ", " ", " ", "\n\n"][random.below(words.length + 4)];
      const ends = sentenceEnds(text, { language, commas: false });
      expect(ends, JSON.stringify(text)).toEqual(expect.arrayContaining(previous));
      previous = ends;
    }
  }
});
