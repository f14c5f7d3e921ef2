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

/** The reader's language, with the formats of numbers and dates of the reader's region. */
export interface Locale {
  readonly language: UiLanguage;
  /** BCP 47, for example `de-AT`. */
  readonly tag: string;
  readonly words: Texts;
  whole(value: number): string;
  /** With one decimal digit. */
  tenths(value: number): string;
  /** Rounded to minutes, in UTC. @param timeMs since the epoch. */
  time(timeMs: number): string;
  /** @param day in UTC, for example `2030-01-31`. */
  day(day: string): string;
  /** Name of a language of the voices. @param code ISO 639-3. */
  languageName(code: string): string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Undefined until {@link localeOf} is called. */
    locale: Locale | undefined;
  }
}

export function isLanguage(value: string | undefined): value is UiLanguage {
  return value !== undefined && Object.hasOwn(uiLanguages, value);
}

/**
 * The cookie contains a language and nothing else, so another site of the domain can only change the
 * language.
 */
export const languageCookie = "svc-tts-language";

export function localeOf(request: FastifyRequest): Locale {
  const { headers, cookies } = request;
  // The cookies of a request that was rejected early are not parsed.
  request.locale ??= chooseLocale(headers["accept-language"], cookies?.[languageCookie]);
  return request.locale;
}

/**
 * @param accepted the header `Accept-Language`, which selects the language without a chosen one, and the
 * region.
 * @param chosen by the user.
 */
export function chooseLocale(accepted: string | undefined, chosen: string | undefined): Locale {
  const wanted = wantedBy(accepted ?? "");
  const language = isLanguage(chosen) ? chosen : (wanted[0]?.language ?? "en");
  return createLocale(language, wanted.find((one) => one.language === language)?.tag ?? language);
}

interface Wanted {
  readonly language: UiLanguage;
  readonly tag: string;
  readonly quality: number;
}

/** Bounds the work for a hostile header. */
const maxRanges = 100;

/** The supported languages of `Accept-Language` (RFC 9110, section 12.5.4), by descending weight. */
function wantedBy(header: string): Wanted[] {
  return header
    .split(",", maxRanges)
    .map(readRange)
    .filter((range) => range !== undefined)
    .toSorted((a, b) => b.quality - a.quality);
}

const range = /^\s*([a-z]{2,8})(?:-[a-z]{4})?(?:-([a-z]{2}))?(?:-[a-z\d-]*)?\s*(?:;\s*q=([\d.]{1,5})\s*)?$/i;

function readRange(text: string): Wanted | undefined {
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

/** Formatters are created when they are first used, because they are expensive. */
function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
