import { expect, test } from "vitest";
import {
  divide,
  type SegmentationOptions,
  type SegmentMode,
  splitReady,
} from "../../../../server/api/sockets/segmentation.ts";

const usual: SegmentationOptions = {
  mode: "bySentence",
  language: "eng",
  commas: false,
  longestText: 1000,
};

test.each<[SegmentMode, string, string]>([
  ["bySentence", "One. Two. Thr", "One. Two."],
  ["bySentence", "One.", ""],
  ["immediate", "One. Two. Thr", "One. Two. Thr"],
  ["never", "One. Two. Thr", ""],
])("splitReady in mode %s commits from %j the text %j", (mode, text, ready) => {
  expect(splitReady(text, { ...usual, mode })).toEqual({ ready, rest: text.slice(ready.length) });
});

test("splitReady also splits at commas if commas are on, as on the binary socket", () => {
  expect(splitReady("Yes, of cour", { ...usual, commas: true }).ready).toBe("Yes,");
});

test.each([
  ["One. Two. Three.", 1000, ["One. Two. Three."]],
  ["One. Two. Three.", 9, ["One. Two.", "Three."]],
  ["One. Two. Three.", 4, ["One.", "Two.", "Three."]],
  ["A sentence above the limit. No.", 10, ["A sentence above the limit.", "No."]],
  ["  One.  ", 4, ["One."]],
  [" \n ", 1000, []],
  ["😀😀😀😀", 4, ["😀😀😀😀"]],
])("divide splits %j with a limit of %i characters into %j", (text, longestText, parts) => {
  expect(divide(text, { ...usual, longestText })).toEqual(parts);
});
