import type { LanguageRules } from "./common/language.ts";
import { type NormalizationWindow, phrase, type WordReading } from "./common/window.ts";

/**
 * "01.05.2024/02.05.2024", "v1.2.3/v1.2.4", "192.168.1.0/24": words that no rule reads as a whole are read
 * part by part.
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
