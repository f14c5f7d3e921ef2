import { describe, expect, test } from "vitest";
import { TokenAligner } from "../../../server/engine/espeak/words.ts";

const dictionary: Readonly<Record<string, readonly string[]>> = {
  "of the": ["ʌ v ð ə"],
  "in of": ["ɪ n ʌ v"],
  "9": ["n aɪ n"],
  "90": ["n aɪ n", "t i"],
};

/** Reads words like eSpeak NG: from the left, and first the pairs that the dictionary has as one entry. */
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

describe("the words of a reading are assigned to their tokens", () => {
  test.each([
    ["one word each", "big sea", ["big", "sea"]],
    ["a token of two words", "big 90 sea", ["big", "naɪnti", "sea"]],
    ["a token that is not read", "big - sea", ["big", "", "sea"]],
    ["two tokens that are read as one word", "cup of the sea", ["cup", "ʌ", "vðə", "sea"]],
    [
      "the same, where numbers and signs are about",
      "- 90 of the 9 -",
      ["", "naɪnti", "ʌ", "vðə", "naɪn", ""],
    ],
    ["one that could be joined with either neighbour", "in of the sea", undefined],
  ])("%s", (_what, text, sounds) => {
    expect(align(text)).toEqual(sounds);
  });

  test("tokens have no words if context changes the number of words", () => {
    const aligner = new TokenAligner((text) => (text === "big sea" ? [["b"], ["i"], ["g"]] : read(text)));
    expect(aligner.align(["big", "sea"])).toBeUndefined();
  });

  test("a word is read separately once", () => {
    const heard: string[] = [];
    const aligner = new TokenAligner((text) => {
      heard.push(text);
      return read(text);
    });
    aligner.align(["big", "sea", "big"]);
    aligner.align(["sea", "big"]);
    expect(heard).toEqual(["big sea big", "big", "sea", "sea big"]);
  });
});
