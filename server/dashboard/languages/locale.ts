import type { FastifyRequest } from "fastify";
import { languages as spokenLanguages } from "../../../config/contract/voices.ts";
import { englishTexts, type Texts } from "./english.ts";
import { germanTexts } from "./german.ts";

/** The languages of the dashboard, each with its own name. */
export const uiLanguages = {
  en: { name: "English", words: englishTexts },
  de: { name: "Deutsch", words: germanTexts },
} as const satisfies Record<string, { name: string; words: Texts }>;

export type UiLanguage = keyof typeof uiLanguages;

/** The language of a page, and the formats of numbers and dates in the user's region. */
export interface Locale {
  readonly language: UiLanguage;
  /** The language tag (BCP 47), for example `de-AT`. */
  readonly tag: string;
  readonly words: Texts;
  whole(value: number): string;
  /** Formats a number with one decimal digit. */
  tenths(value: number): string;
  /** Formats a time in UTC, without seconds. @param timeMs the time in milliseconds since the epoch. */
  time(timeMs: number): string;
  /** Formats a date. @param day a day in UTC, for example `2030-01-31`. */
  day(day: string): string;
  /** Returns the name of a language of the voices. @param code the ISO 639-3 code. */
  languageName(code: string): string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** The locale of the request. The value is undefined until the first call of {@link localeOf}. */
    locale: Locale | undefined;
  }
}

export function isLanguage(value: string | undefined): value is UiLanguage {
  return value !== undefined && Object.hasOwn(uiLanguages, value);
}

/**
 * The name of the cookie with the selected language. The cookie contains no other data, so another site of
 * the domain could change only the language.
 */
export const languageCookie = "svc-tts-language";

export function localeOf(request: FastifyRequest): Locale {
  const { headers, cookies } = request;
  // `cookies` is undefined if the request was rejected before the cookies were parsed.
  request.locale ??= chooseLocale(headers["accept-language"], cookies?.[languageCookie]);
  return request.locale;
}

/**
 * Selects the language and the region of a page.
 * @param accepted the header `Accept-Language`. The header determines the region, and the language if the
 * user has selected none.
 * @param chosen the language that the user has selected.
 */
export function chooseLocale(accepted: string | undefined, chosen: string | undefined): Locale {
  const preferences = readPreferences(accepted ?? "");
  const language = isLanguage(chosen) ? chosen : (preferences[0]?.language ?? "en");
  return createLocale(language, preferences.find((one) => one.language === language)?.tag ?? language);
}

interface LanguagePreference {
  readonly language: UiLanguage;
  readonly tag: string;
  readonly quality: number;
}

/** The highest number of ranges that are read, so that the work for a hostile header is bounded. */
const maxRanges = 100;

/** Returns the supported languages of `Accept-Language` (RFC 9110, section 12.5.4), by descending weight. */
function readPreferences(header: string): LanguagePreference[] {
  return header
    .split(",", maxRanges)
    .map(readRange)
    .filter((range) => range !== undefined)
    .toSorted((a, b) => b.quality - a.quality);
}

const range = /^\s*([a-z]{2,8})(?:-[a-z]{4})?(?:-([a-z]{2}))?(?:-[a-z\d-]*)?\s*(?:;\s*q=([\d.]{1,5})\s*)?$/i;

function readRange(text: string): LanguagePreference | undefined {
  const [, name, region, weight = "1"] = range.exec(text) ?? [];
  const language = name?.toLowerCase();
  const quality = Number(weight);
  if (!isLanguage(language) || !(quality > 0)) return undefined;
  const tag = region === undefined ? language : `${language}-${region.toUpperCase()}`;
  return { language, tag, quality };
}

function createLocale(language: UiLanguage, tag: string): Locale {
  const times = once(
    () => new Intl.DateTimeFormat(tag, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" }),
  );
  const days = once(() => new Intl.DateTimeFormat(tag, { dateStyle: "medium", timeZone: "UTC" }));
  const names = once(() => new Intl.DisplayNames(tag, { type: "language", fallback: "none" }));
  const wholes = once(() => new Intl.NumberFormat(tag, { maximumFractionDigits: 0 }));
  const tenths = once(
    () => new Intl.NumberFormat(tag, { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
  );
  return {
    language,
    tag,
    words: uiLanguages[language].words,
    whole: (value) => wholes().format(value),
    tenths: (value) => tenths().format(value),
    time: (timeMs) => times().format(timeMs),
    day: (day) => days().format(Date.parse(day)),
    languageName: (code) => {
      const known = spokenLanguages[code];
      return known ? (names().of(known.iso6391) ?? known.name) : code;
    },
  };
}

/**
 * Returns a function that creates a value on its first call. The creation of a formatter is expensive, and
 * most pages use only some formatters.
 */
function once<Value>(create: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= create();
    return value;
  };
}
