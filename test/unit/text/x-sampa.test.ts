import { expect, test } from "vitest";
import { readXSampa } from "../../../server/contract/text/x-sampa.ts";

test.each([
  ['" k { S', "k1@S"],
  ['"k{S', "k1@S"],
  ['h @ . " l oU', "h0xl1o"],
  ['" r\\ E d', "r1Ed"],
  ["%kA:-r\\@`", "k2ar0R"],
  ['"tSO:dZd', "C1aJd"],
  ['"t_SI.d_Zi', "C1IJ0i"],
  ['"t S', undefined],
  ['"bVtn=', "b1At0N"],
  ['" aI . D 3` Z', "1YD0RZ"],
  ['"wQ5TIN', "w1alT0IG"],
  ['"h@U"vOI', "h1ov1O"],
  ["", undefined],
  ["ʃ", undefined],
  ["t_h", undefined],
  ["constructor", undefined],
])("readXSampa converts %j to %j", (written, phonemes) => {
  const reading = readXSampa(written);
  expect("phonemes" in reading ? reading.phonemes : undefined).toBe(phonemes);
});
