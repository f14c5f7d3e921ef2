import type { FastifyRequest } from "fastify";
import { languages as spokenLanguages } from "../../../config/contract/voices.ts";
import { englishTexts, type Texts } from "./english.ts";
import { germanTexts } from "./german.ts";

/** The languages of the dashboard, each by its own name. */
export const uiLanguages = {
  en: { name: "English", words: englishTexts },
  de: { name: "Deutsch", words: germanTexts },
} as const satisfies Record<string, { name: string; words: Texts }>;

export type UiLanguage = keyof typeof uiLanguages;

/** How a person reads: the words of a language, and numbers and dates as they are written in the person's region. */
export interface Locale {
  readonly language: UiLanguage;
  /** BCP 47, as `de-AT`. */
  readonly tag: string;
  readonly words: Texts;
  whole(value: number): string;
  /** With one digit after the point. */
  tenths(value: number): string;
  /** To the minute, in UTC. @param timeMs since the epoch. */
  time(timeMs: number): string;
  /** @param day of UTC, as `2030-01-31`. */
  day(day: string): string;
  /** Of a language that voices speak. @param code ISO 639-3. */
  languageName(code: string): string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Undefined until somebody asks by {@link localeOf}. */
    locale: Locale | undefined;
  }
}

export function isLanguage(value: string | undefined): value is UiLanguage {
  return value !== undefined && Object.hasOwn(uiLanguages, value);
}

/** Holds a language and nothing else: what another site of the domain plants changes no more than that. */
export const languageCookie = "svc-tts-language";

export function localeOf(request: FastifyRequest): Locale {
  const { headers, cookies } = request;
  // a request that is refused at the door has no cookies read
  request.locale ??= chooseLocale(headers["accept-language"], cookies?.[languageCookie]);
  return request.locale;
}

/**
 * @param accepted the header `Accept-Language`, which chooses where nobody has chosen, and names the region.
 * @param chosen by the person.
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

/** Bounds the work on a hostile header. */
const maxRanges = 100;

/** What is spoken here of `Accept-Language` (RFC 9110, section 12.5.4), the dearest first. */
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

/** Formatters cost more to make than pages that need none should pay. */
function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
