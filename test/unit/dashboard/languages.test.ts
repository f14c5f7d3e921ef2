import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { englishTexts } from "../../../server/dashboard/languages/english.ts";
import { germanTexts } from "../../../server/dashboard/languages/german.ts";
import { chooseLocale } from "../../../server/dashboard/languages/locale.ts";

const folder = join(import.meta.dirname, "../../../server/dashboard");

/** The texts that are equal in both languages. */
const alike = new Set([
  "Name",
  "Details",
  "Team",
  "Audio (s)",
  "Text",
  "{seconds} s",
  // The source of a text that only returns its message.
  "({ message }) => message",
]);

/** Returns each text with its path, such as `section.key`. A function is represented by its source. */
function textsOf(words: object, path: readonly string[] = []): (readonly [string, string])[] {
  return Object.entries(words).flatMap(([key, value]) =>
    typeof value === "object"
      ? textsOf(value, [...path, key])
      : [[[...path, key].join("."), String(value)] as const],
  );
}

describe("the texts of the dashboard", () => {
  it("are all translated to German", () => {
    const translations = new Map(textsOf(germanTexts));
    const untranslated = textsOf(englishTexts).filter(
      ([key, text]) => translations.get(key) === text && !alike.has(text),
    );
    expect(untranslated).toEqual([]);
    expect([...translations].filter(([, text]) => text.trim() === "")).toEqual([]);
  });

  it("are all used", () => {
    const source = globSync("**/*.{ts,js}", { cwd: folder })
      .filter((path) => !/languages\/(english|german)\.ts$/.test(path))
      .map((path) => readFileSync(join(folder, path), "utf8"))
      .join("\n");
    const keys = Object.entries(englishTexts).flatMap(([section, texts]) =>
      Object.keys(texts).map((key) => `${section}.${key}`),
    );
    const used = new Set(
      Array.from(source.matchAll(/\b(\w+)(?=\.(\w+))/g), (match) => match.slice(1).join(".")),
    );
    expect(keys.filter((key) => !used.has(key))).toEqual([]);
  });

  it("have the same placeholders for scripts in each language", () => {
    const places = (texts: object) =>
      Object.entries(texts).map(([key, text]) => [
        key,
        String(text)
          .match(/\{\w+\}/g)
          ?.toSorted(),
      ]);
    expect(places(germanTexts.client)).toEqual(places(englishTexts.client));
  });
});

describe("the label of a voice in the playground", () => {
  it.each([
    ["Flite", "alan (male, English, Flite)", "alan (männlich, Englisch, Flite)"],
    ["", "alan (male, English)", "alan (männlich, Englisch)"],
  ])("contains the name of the engine if it is known (%j)", (engine, english, german) => {
    expect(englishTexts.playground.voiceOf("alan", "male", "English", engine)).toBe(english);
    expect(germanTexts.playground.voiceOf("alan", "male", "Englisch", engine)).toBe(german);
  });
});

describe("the locale of a user", () => {
  it.each([
    [undefined, undefined, "en"],
    ["*", undefined, "en"],
    ["fr-FR, fr;q=0.9", undefined, "en"],
    ["de", undefined, "de"],
    ["fr, de-AT;q=0.8, en;q=0.5", undefined, "de-AT"],
    ["de;q=0.3, en-GB;q=0.7", undefined, "en-GB"],
    ["de-Latn-CH-1996", undefined, "de-CH"],
    ["de;q=0, en", undefined, "en"],
    ["DE-de", "fr", "de-DE"],
    ["en-US, de-CH;q=0.1", "de", "de-CH"],
    ["de-CH", "en", "en"],
    [`${"x,".repeat(100)}de`, undefined, "en"],
    ["de-<script>, constructor", "__proto__", "en"],
  ])("with Accept-Language %j and the choice %j is %s", (accepted, chosen, tag) => {
    const locale = chooseLocale(accepted, chosen);
    expect([locale.tag, locale.language]).toEqual([tag, tag.slice(0, 2)]);
  });

  it.each([
    ["en-US", "1,234,567", "0.5", "Jan 31, 2030, 1:05 PM", "Jan 31, 2030", "Spanish"],
    ["en-GB", "1,234,567", "0.5", "31 Jan 2030, 13:05", "31 Jan 2030", "Spanish"],
    ["de-DE", "1.234.567", "0,5", "31.01.2030, 13:05", "31.01.2030", "Spanisch"],
  ])("%s sets the format of numbers, times and language names", (tag, whole, tenths, time, day, name) => {
    const locale = chooseLocale(tag, undefined);
    const at = Date.UTC(2030, 0, 31, 13, 5);
    expect([locale.whole(1_234_567), locale.tenths(0.5)]).toEqual([whole, tenths]);
    expect([locale.time(at).replaceAll("\u202f", " "), locale.day("2030-01-31")]).toEqual([time, day]);
    expect([locale.languageName("spa"), locale.languageName("zzz")]).toEqual([name, "zzz"]);
  });
});
