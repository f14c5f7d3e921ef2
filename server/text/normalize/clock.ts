import type { LanguageRules } from "./common/language.ts";
import {
  isCapitalized,
  type NormalizationWindow,
  spreadOverWords,
  type WordReading,
} from "./common/window.ts";
import type { ClockTime } from "./common/written.ts";

const colon = /^(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2}))?(?<tail>[ap]\.?m\.?|h)?$/iu;
const dot = /^(?<hour>\d{1,2})\.(?<minute>\d{2})$/u;
const withH = /^(?<hour>\d{1,2})h(?<minute>\d{2})?(?:min)?$/iu;
const withHalf = /^(?<hour>\d{1,2})(?<tail>[ap]\.?m\.?)$/iu;
const halves = /^[ap]\.? ?m\.?$/iu;

/**
 * Reads a time of day.
 * @param first whether the time is the first of two, such as "9:00" in "9:00–17:00".
 */
export function readClock(
  window: NormalizationWindow,
  language: LanguageRules,
  first = false,
): WordReading | undefined {
  const marker = markerAfter(window, language);
  const forms = [
    colon,
    withHalf,
    ...(language.decimal === "," ? [withH] : []),
    ...(marker?.kind === "uhr" ? [dot] : []),
    ...(marker ? [/^(?<hour>\d{1,2})$/u] : []),
  ];
  const groups = forms.map((form) => form.exec(window.text)?.groups).find((found) => found !== undefined);
  if (!groups) return readSpacedH(window, language);
  const { hour, minute, second, tail } = groups;
  const time = toTime(hour, minute, second, { ...halfOf(tail ?? ""), marked: tail === "h", first });
  if (!time) return undefined;
  const isDotted = tail?.includes(".") === true && window.word.after.startsWith(".");
  if (isDotted) return { spoken: [language.clock(time)], after: dotAfterHalf(window, 0) };
  if (!marker || tail) return { spoken: [language.clock(time)] };
  return withMarker(window, { ...time, ...marker.time }, marker, language);
}

interface Marker {
  readonly kind: "half" | "uhr" | "h";
  readonly words: number;
  readonly time: Partial<ClockTime>;
}

/** Finds a marker after the number: "pm", "p. m.", "Uhr" or "h". */
function markerAfter(window: NormalizationWindow, { decimal }: LanguageRules): Marker | undefined {
  if (window.word.after !== "") return undefined;
  const next = window.textAt(1);
  if (halves.test(next)) return { kind: "half", words: 1, time: halfOf(next) };
  const letter = window.at(1)?.after === "." && window.textAt(2) === "m";
  if (letter && /^[ap]$/iu.test(next)) return { kind: "half", words: 2, time: halfOf(next) };
  if (next === "Uhr") return { kind: "uhr", words: 1, time: { marked: true } };
  const clocked = decimal === "," && next === "h" && /^\d{1,2}:\d{2}$/u.test(window.text);
  return clocked ? { kind: "h", words: 1, time: { marked: true } } : undefined;
}

function halfOf(written: string): { half: ClockTime["half"] } {
  if (!/^[ap]/iu.test(written)) return { half: undefined };
  return { half: /^a/iu.test(written) ? "am" : "pm" };
}

function withMarker(
  window: NormalizationWindow,
  time: ClockTime,
  { words, kind }: Marker,
  language: LanguageRules,
): WordReading {
  const all = language.clock(time).split(" ");
  const bare = language.clock({ ...time, half: undefined, marked: false, first: true }).split(" ");
  // The words of the marked time and of the bare time are equal up to the marker.
  let equalWords = 0;
  while (equalWords < bare.length && equalWords < all.length - 1 && bare[equalWords] === all[equalWords])
    equalWords++;
  const spoken = [
    all.slice(0, equalWords).join(" "),
    ...spreadOverWords(all.slice(equalWords).join(" "), words),
  ];
  return { spoken, ...(kind === "half" && { after: dotAfterHalf(window, words) }) };
}

/** Returns the punctuation after "p.m.". The last dot also ends the sentence if a capital letter follows. */
function dotAfterHalf(window: NormalizationWindow, words: number): string {
  const { text = "", after = "" } = window.at(words) ?? {};
  const next = window.at(words + 1);
  const rest = after.replace(/^\./u, "");
  const dotted = text.endsWith(".") || after.startsWith(".");
  return dotted && (!next || isCapitalized(next.text)) ? `.${rest}` : rest;
}

function toTime(
  hour = "",
  minute = "0",
  second: string | undefined,
  form: Pick<ClockTime, "half" | "marked" | "first">,
): ClockTime | undefined {
  const time = {
    hour: Number(hour),
    minute: Number(minute),
    second: second === undefined ? undefined : Number(second),
    ...form,
  };
  return time.hour <= 24 && time.minute < 60 && (time.second ?? 0) < 60 ? time : undefined;
}

/** Reads a time such as "15 h 30". */
function readSpacedH(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const hour = /^\d{1,2}$/u.exec(window.text)?.[0];
  if (language.decimal !== "," || hour === undefined || window.textAt(1) !== "h" || !window.joins())
    return undefined;
  const minute = window.joins(1) ? /^\d{2}$/u.exec(window.textAt(2))?.[0] : undefined;
  const time = toTime(hour, minute, undefined, { half: undefined, marked: true, first: false });
  if (!time || minute === undefined || language.units[window.textAt(3)] !== undefined) return undefined;
  return { spoken: spreadOverWords(language.clock(time), 3) };
}
