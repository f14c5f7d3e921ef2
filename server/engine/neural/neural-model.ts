import type { SpeedRange } from "../runtime/speed-range.ts";

/** A loaded model, whatever its kind. */
export interface NeuralModel {
  /** Hz. */
  readonly rate: number;
  /** Ids that it takes at once, or more than anybody says. */
  readonly maxSymbols: number;
  /** Lengths that it speaks by itself. */
  readonly reach: SpeedRange;
  readonly borders: Borders;
  /** @throws Error when the graph does not give what its kind promises. */
  speak(line: SpelledLine, manner: SpeakingStyle): Promise<ModelOutput>;
  /** Ids of words, each with punctuation that the model knows. */
  spell(words: readonly PhonemeWord[], speaker: number): SpelledLine;
}

/** Past these a model that never heard such speech slurs it. */
export const neuralSpeedRange: SpeedRange = { least: 0.5, most: 2 };

/** How the borders of words that a model's durations give lie to those that are heard. */
export interface Borders {
  /** Added to each border. */
  readonly shiftSeconds: number;
  /** Whether the first and the last border are corrected by the level of the sound, as the model's silences blur them. */
  readonly byLevel: boolean;
}

export const exactBorders: Borders = { shiftSeconds: 0, byLevel: false };

export interface PhonemeWord {
  readonly token: number;
  readonly sounds: readonly string[];
  /** Marks written after it. */
  readonly after: string;
}

export interface SpelledLine {
  readonly ids: readonly number[];
  /** The token that each id says something of; -1 where it is of none. */
  readonly tokens: readonly number[];
}

export interface SpeakingStyle {
  readonly speaker: number;
  /** 2 takes twice as long. */
  readonly stretch: number;
}

export interface ModelOutput {
  /** -1 to 1. */
  readonly audio: Float32Array;
  /** Samples of each id: the model's own durations. */
  readonly samples: readonly number[];
}

/** Gathers ids with their tokens. */
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

/** Marks that shape the melody; quotes and brackets do not. */
export function melodyMarks(after: string): string[] {
  return [...after].filter((mark) => ".,;:!?…—".includes(mark)).slice(0, 1);
}

/** Durations in frames as samples: models count in frames of one length, which shows in the whole. */
export function toSamples(frames: readonly number[], audioSamples: number): number[] {
  const total = frames.reduce((sum, count) => sum + count, 0);
  if (!(total > 0) || frames.some((count) => !(count >= 0))) {
    throw new Error("the model's durations are no durations");
  }
  const frameSamples = audioSamples / total;
  return frames.map((count) => count * frameSamples);
}
