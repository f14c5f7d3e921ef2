/**
 * The base language of a tag as ISO 639-1 where there is one, so that `en`, `eng` and `en-US` are the same; undefined
 * when the text is no language tag.
 */
function baseLanguage(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return undefined; // Intl throws RangeError for exactly this case
  }
}

export function sameLanguage(a: string, b: string): boolean {
  const base = baseLanguage(a);
  return base !== undefined && base === baseLanguage(b);
}
