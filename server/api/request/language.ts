/**
 * The base language of a tag in ISO 639-1 if possible, so that `en`, `eng` and `en-US` are the same.
 * Undefined if the text is not a language tag.
 */
function baseLanguage(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return undefined; // Intl throws RangeError only in this case.
  }
}

export function sameLanguage(a: string, b: string): boolean {
  const base = baseLanguage(a);
  return base !== undefined && base === baseLanguage(b);
}
