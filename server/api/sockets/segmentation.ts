import { sentenceEnds } from "../../contract/text/sentence-ends.ts";
import { countCodePoints } from "../request/code-points.ts";

/** The values of the query parameter `segment`, which determines when received text is synthesized. */
export const segmentModes = ["bySentence", "immediate", "never"] as const;
export type SegmentMode = (typeof segmentModes)[number];

export interface SegmentationOptions {
  readonly mode: SegmentMode;
  /** The language of the voice (ISO 639-3). */
  readonly language: string;
  /** Whether a comma also ends a segment, as on `/ws`. */
  readonly commas: boolean;
  /** The highest number of characters of one synthesis. */
  readonly longestText: number;
}

/** The part of a text that can be synthesized now, and the part that waits for more text. */
export interface Split {
  readonly ready: string;
  readonly rest: string;
}

/** Splits text that later messages may continue. */
export function splitReady(text: string, { mode, ...options }: SegmentationOptions): Split {
  switch (mode) {
    case "never":
      return { ready: "", rest: text };
    case "immediate":
      return { ready: text, rest: "" };
    case "bySentence": {
      const end = sentenceEnds(text, options).at(-1) ?? 0;
      return { ready: text.slice(0, end), rest: text.slice(end) };
    }
  }
}

/**
 * Divides text between sentences into parts of at most `longestText` characters. Each part is one synthesis.
 * A sentence above the limit becomes one part. Blank text has no parts.
 */
export function divide(text: string, { language, longestText }: SegmentationOptions): string[] {
  const whole = text.trim();
  if (whole === "") return [];
  if (countCodePoints(whole) <= longestText) return [whole];
  const parts: string[] = [];
  for (const sentence of sentencesOf(whole, language)) {
    const joined = `${parts.at(-1) ?? ""}${sentence}`;
    if (parts.length > 0 && countCodePoints(joined.trim()) <= longestText) parts[parts.length - 1] = joined;
    else parts.push(sentence);
  }
  return parts.map((part) => part.trim());
}

function sentencesOf(text: string, language: string): string[] {
  const ends = [...sentenceEnds(text, { language, commas: false }), text.length];
  return ends.map((end, at) => text.slice(ends[at - 1] ?? 0, end));
}
