import { expect, test } from "vitest";
import {
  type EngineVoice,
  findVoice,
  languageOf,
  languages,
  voices,
  voicesOf,
} from "../../../config/contract/voices.ts";

test("voices have unique ids, and findVoice returns each of them", () => {
  expect(new Set(voices.map(({ id }) => id)).size).toBe(voices.length);
  for (const voice of voices) expect(findVoice(voice.id)).toBe(voice);
  expect(findVoice("no-such-voice")).toBeUndefined();
});

test("arcana has exactly the sixteen voices of specification 2.1", () => {
  const names =
    "luna astra sirius estelle lyra vespera walnut eliphas arcade atrium eucalyptus fern stucco transom oculus moss";
  expect(
    voicesOf("arcana")
      .map(({ id }) => id)
      .sort(),
  ).toEqual(names.split(" ").sort());
});

test("the voices of a model have different engine voices or parameters", () => {
  const key = (engine: EngineVoice) => Object.values(engine).join(" ");
  for (const model of ["mist", "arcana"] as const) {
    const keys = voicesOf(model).map(({ engine }) => key(engine));
    expect(new Set(keys).size).toBe(keys.length);
  }
});

test("mist and mistv2 have the same voices, in at least twelve languages", () => {
  expect(voicesOf("mistv2")).toEqual(voicesOf("mist"));
  expect(new Set(voicesOf("mist").map(({ language }) => language)).size).toBeGreaterThanOrEqual(12);
});

test("the first English voice of mist is awb or rms, which are clear over telephones", () => {
  expect(voicesOf("mist").find(({ language }) => language === "eng")?.engine.voice).toMatch(/^(awb|rms)$/);
});

test("the language of each voice has both codes, and each language has a voice", () => {
  const spoken = new Set(voices.map(({ language }) => language));
  expect([...spoken].sort()).toEqual(Object.keys(languages).sort());
  expect(languageOf("en")).toBe("eng");
  expect(languageOf("eng")).toBe("eng");
  expect(languageOf("de")).toBe("deu");
  expect(languageOf("tlh")).toBeUndefined();
  expect(languageOf("constructor")).toBeUndefined();
});

test("each voice names the license of its source", () => {
  for (const { license } of voices) expect(license).toMatch(/BSD|GPL/);
});
