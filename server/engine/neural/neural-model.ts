import type { SpeedRange } from "../runtime/speed-range.ts";

/** A loaded model of any kind. */
export interface NeuralModel {
  /** Hz. */
  readonly rate: number;
  /** Highest number of IDs per call. */
  readonly maxSymbols: number;
  /** Range of lengths that it supports. */
  readonly reach: SpeedRange;
  readonly borders: Borders;
  /** @throws Error if the graph does not return the outputs of its kind. */
  speak(line: SpelledLine, manner: SpeakingStyle): Promise<ModelOutput>;
  /** IDs of words, each with punctuation from the model's vocabulary. */
  spell(words: readonly PhonemeWord[], speaker: number): SpelledLine;
}

/** Beyond these limits a model slurs, because its training data had no such speech. */
export const neuralSpeedRange: SpeedRange = { least: 0.5, most: 2 };

/** Offset between the word borders of a model's durations and the audible ones. */
export interface Borders {
  /** Added to each border. */
  readonly shiftSeconds: number;
  /**
   * Whether the first and the last border are corrected by the audio level, because the model's silences blur
   * them.
   */
  readonly byLevel: boolean;
}

export const exactBorders: Borders = { shiftSeconds: 0, byLevel: false };

export interface PhonemeWord {
  readonly token: number;
  readonly sounds: readonly string[];
  /** Marks after the word. */
  readonly after: string;
}

export interface SpelledLine {
  readonly ids: readonly number[];
  /** The token of each ID, or -1. */
  readonly tokens: readonly number[];
}

export interface SpeakingStyle {
  readonly speaker: number;
  /** 2 doubles the duration. */
  readonly stretch: number;
}

export interface ModelOutput {
  /** -1 to 1. */
  readonly audio: Float32Array;
  /** Samples of each ID, from the model's durations. */
  readonly samples: readonly number[];
}

/** Collects IDs with their tokens. */
export class Line implements SpelledLine {
  readonly ids: number[] = [];
  readonly tokens: number[] = [];

  add(ids: readonly number[], token: number): void {
    for (const id of ids) {
      this.ids.push(id);
      this.tokens.push(token);
    }
  }
}

/** Marks that affect the melody. Quotes and brackets do not. */
export function melodyMarks(after: string): string[] {
  return [...after].filter((mark) => ".,;:!?…—".includes(mark)).slice(0, 1);
}

/**
 * Converts durations from frames to samples. All frames have the same length, which follows from the total.
 */
export function toSamples(frames: readonly number[], audioSamples: number): number[] {
  const total = frames.reduce((sum, count) => sum + count, 0);
  if (!(total > 0) || frames.some((count) => !(count >= 0))) {
    throw new Error("the durations of the model are invalid");
  }
  const frameSamples = audioSamples / total;
  return frames.map((count) => count * frameSamples);
}
