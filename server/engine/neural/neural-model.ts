import type { SpeedRange } from "../runtime/speed-range.ts";
import type { AudioRange } from "./windows.ts";

/** A loaded ONNX model, of Piper or Kokoro. */
export interface NeuralModel {
  /** The sampling rate in Hz. */
  readonly rate: number;
  /** The highest number of symbol IDs in one call of `speak`. */
  readonly maxSymbols: number;
  /** The range of speech lengths that the model supports. */
  readonly reach: SpeedRange;
  readonly borders: Borders;
  /**
   * Synthesizes one line.
   * @throws Error if the graph does not return the expected outputs.
   */
  speak(line: SpelledLine, style: SpeakingStyle): Promise<ModelOutput>;
  /**
   * Starts a line whose audio is returned in windows. Returns undefined if the model has no windows for the
   * speaker.
   * @throws Error if the graph does not return the expected outputs.
   */
  speakInWindows?(line: SpelledLine, style: SpeakingStyle): Promise<WindowedOutput | undefined>;
  /**
   * Converts words to symbol IDs. Sounds and punctuation that are not in the model's vocabulary are left out.
   */
  spell(words: readonly PhonemeWord[], speaker: number): SpelledLine;
}

/**
 * The range of speech lengths in which models sound natural. Their training data contains no faster or slower
 * speech.
 */
export const neuralSpeedRange: SpeedRange = { least: 0.5, most: 2 };

/** The correction of the word borders that follow from a model's durations. */
export interface Borders {
  /** The time that is added to each border. */
  readonly shiftSeconds: number;
  /**
   * Whether the first and the last border are corrected by the level of the audio. Some models have no clear
   * border between a word and silence.
   */
  readonly byLevel: boolean;
}

export const exactBorders: Borders = { shiftSeconds: 0, byLevel: false };

export interface PhonemeWord {
  readonly token: number;
  readonly sounds: readonly string[];
  /** The punctuation marks after the word. */
  readonly after: string;
}

export interface SpelledLine {
  readonly ids: readonly number[];
  /** The token to which each ID belongs; -1 for an ID that belongs to no token. */
  readonly tokens: readonly number[];
}

export interface SpeakingStyle {
  readonly speaker: number;
  /** The length of the speech relative to the model's normal length. */
  readonly stretch: number;
}

export interface ModelOutput {
  /** Samples from -1 to 1. */
  readonly audio: Float32Array;
  /** The number of samples of each ID, which follows from the model's durations. */
  readonly samples: readonly number[];
}

/** The output for a line that is synthesized in windows. */
export interface WindowedOutput {
  readonly samples: ModelOutput["samples"];
  /** The number of samples of the line. */
  readonly length: number;
  /** Synthesizes windows in order. Together they contain at least the given range. */
  audio(range: AudioRange): AsyncIterable<{ readonly at: number; readonly audio: Float32Array }>;
}

/** Collects IDs and their tokens. */
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

/** Returns the first mark that affects the melody, if any. Quotation marks and brackets have no effect. */
export function melodyMarks(after: string): string[] {
  return [...after].filter((mark) => ".,;:!?…—".includes(mark)).slice(0, 1);
}

/**
 * Converts durations from frames to samples. All frames have the same length: the length of the audio divided
 * by the number of frames.
 */
export function toSamples(frames: readonly number[], audioSamples: number): number[] {
  const total = frames.reduce((sum, count) => sum + count, 0);
  if (!(total > 0) || frames.some((count) => !(count >= 0))) {
    throw new Error("the model returned invalid durations");
  }
  const frameSamples = audioSamples / total;
  return frames.map((count) => count * frameSamples);
}
