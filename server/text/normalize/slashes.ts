import type { LanguageRules } from "./common/language.ts";
import { type NormalizationWindow, phrase, type WordReading } from "./common/window.ts";

/**
 * Reads a word with slashes part by part, such as "01.05.2024/02.05.2024", "v1.2.3/v1.2.4" or
 * "192.168.1.0/24". No other rule reads a word of this form as a whole.
 */
export function readSlashed(
  window: NormalizationWindow,
  language: LanguageRules,
  read: (window: NormalizationWindow) => WordReading | undefined,
): WordReading | undefined {
  const { text } = window;
  if (!/\d/u.test(text) || !/^[^/]+(?:\/[^/]+)+$/u.test(text)) return undefined;
  const slash = language.symbols["/"] ?? "";
  const parts = text.split("/").map((part, at) => {
    const reading = read(window.ending(part));
    return phrase(at === 0 ? "" : slash, ...(reading?.spoken ?? [part]));
  });
  return { spoken: [phrase(...parts)] };
}
