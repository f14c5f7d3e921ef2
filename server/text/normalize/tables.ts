import type { Gender, Language, Scale, Unit } from "./language.ts";

/** A table that has its own entries only: a user may well write "constructor". */
export function table<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), entries);
}

/** A set from words by spaces. */
export function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/u));
}

/** Lines of `keys = one / many [f]`: a table that a person can read. */
export function unitTable(lines: string): Readonly<Record<string, Unit>> {
  const units: Record<string, Unit> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) {
    const feminine = value.endsWith(" [f]");
    const [one = "", many = one] = value.replace(/ \[f\]$/u, "").split(" / ");
    for (const key of keys) units[key] = { one, many, gender: feminine ? "feminine" : "masculine" };
  }
  return units;
}

/** Lines of `keys = words`. */
export function wordTable(lines: string): Readonly<Record<string, string>> {
  const words: Record<string, string> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) for (const key of keys) words[key] = value;
  return words;
}

/** Lines of `several words = words`. */
export function phraseTable(lines: string): Readonly<Record<string, string>> {
  const words: Record<string, string> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) words[keys.join(" ")] = value;
  return words;
}

/** Lines of `name abbreviation…`, January first. */
export function monthTable(lines: string): Pick<Language, "months" | "monthNames"> {
  const rows = lines
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/u));
  const months = new Map(
    rows.flatMap((names, index) => names.map((name) => [name.toLowerCase(), index + 1] as const)),
  );
  return { months, monthNames: rows.map(([name = ""]) => name) };
}

function* tableLines(lines: string): Generator<{ keys: readonly string[]; value: string }> {
  for (const line of lines.trim().split("\n")) {
    const at = line.lastIndexOf(" = ");
    yield { keys: line.slice(0, at).trim().split(/\s+/u), value: line.slice(at + 3).trim() };
  }
}

/** Makes the words of a language for thousands and above, which agree in one gender. */
export function scalesOf(gender: Gender): (one: string, many: string, short?: boolean) => Scale {
  return (one, many, short = false) => ({ one, many, gender, short });
}
