import { describe, expect, test } from "vitest";
import { TokenAligner } from "../../../server/engine/espeak/words.ts";

const dictionary: Readonly<Record<string, readonly string[]>> = {
  "of the": ["ʌ v ð ə"],
  "in of": ["ɪ n ʌ v"],
  "9": ["n aɪ n"],
  "90": ["n aɪ n", "t i"],
};

/** Reads words like eSpeak NG: from the left, and with dictionary entries of two words first. */
function read(text: string): string[][] {
  const words = text.split(" ").filter((word) => /\w/.test(word));
  const read: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const [word = "", next] = words.slice(i, i + 2);
    const joined = dictionary[`${word} ${next}`];
    if (joined) i++;
    read.push(...(joined ?? dictionary[word] ?? [[...word].join(" ")]));
  }
  return read.map((word) => word.split(" "));
}

const align = (text: string) => {
  return new TokenAligner(read).align(text.split(" "))?.map((sounds) => sounds.join(""));
};

describe("TokenAligner", () => {
  test.each([
    ["assigns one word to each token", "big sea", ["big", "sea"]],
    ["assigns two words to one token", "big 90 sea", ["big", "naɪnti", "sea"]],
    ["assigns no word to a punctuation mark", "big - sea", ["big", "", "sea"]],
    ["divides a word that two tokens share", "cup of the sea", ["cup", "ʌ", "vðə", "sea"]],
    [
      "divides a shared word between numbers and punctuation marks",
      "- 90 of the 9 -",
      ["", "naɪnti", "ʌ", "vðə", "naɪn", ""],
    ],
    ["returns undefined if a token could share a word with both neighbours", "in of the sea", undefined],
  ])("%s", (_what, text, sounds) => {
    expect(align(text)).toEqual(sounds);
  });

  test("returns undefined if context changes the number of words", () => {
    const aligner = new TokenAligner((text) => (text === "big sea" ? [["b"], ["i"], ["g"]] : read(text)));
    expect(aligner.align(["big", "sea"])).toBeUndefined();
  });

  test("reads each single word only once", () => {
    const readTexts: string[] = [];
    const aligner = new TokenAligner((text) => {
      readTexts.push(text);
      return read(text);
    });
    aligner.align(["big", "sea", "big"]);
    aligner.align(["sea", "big"]);
    expect(readTexts).toEqual(["big sea big", "big", "sea", "sea big"]);
  });
});
