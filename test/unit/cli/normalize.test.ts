import { expect, test } from "vitest";
import { languages } from "../../../config/contract/voices.ts";
import { normalizeCommand } from "../../../server/cli/normalize.ts";
import { runInProcess } from "../../support/server/command-line.ts";

function run(lines: readonly string[], ...words: string[]) {
  const readLines = async function* () {
    yield* lines;
  };
  return runInProcess([normalizeCommand], ["normalize", ...words], { readLines });
}

test.each([
  ["eng", "It costs $9.99/month.", "It costs nine dollars and ninety-nine cents per month."],
  ["deu", "5 €/Monat", "fünf Euro pro Monat"],
  ["fra", "2 000 000 habitants", "deux millions d'habitants"],
  ["spa", "N° 4", "número cuatro"],
  ["ita", "21 gatti", "ventuno gatti"],
])("normalize with --lang %s prints %j as %j", async (lang, written, spoken) => {
  expect(await run([written], "--lang", lang)).toEqual({ code: 0, out: spoken, err: "" });
});

test("normalize prints one line for each input line, including empty lines", async () => {
  const { out } = await run(["1", "", "2"], "--lang", "eng");
  expect(out).toBe("one\n\ntwo");
});

test.each(Object.keys(languages))("normalize accepts the language %s", async (lang) => {
  const { code, out } = await run(["Test"], "--lang", lang);
  expect({ code, out }).toEqual({ code: 0, out: "Test" });
});

test.each(["klingon", "", "toString"])(
  "normalize refuses the language %j and lists the languages",
  async (lang) => {
    const { code, out, err } = await run(["1"], "--lang", lang);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("eng");
  },
);

test("normalize requires --lang, and prints its help", async () => {
  expect((await run([])).err).toContain("--lang LANG is required");
  expect((await run([], "--help")).out).toContain("svc-tts normalize");
});
