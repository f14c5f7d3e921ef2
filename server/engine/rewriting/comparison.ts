/** The output of a graph for the fixed texts, and its speed. */
export interface Measured {
  readonly lines: readonly { readonly audio: Float32Array; readonly samples: readonly number[] }[];
  /** The seconds of work for each second of audio. */
  readonly realTimeFactor: number;
}

/**
 * The permitted difference between two samples, relative to full scale. The floating-point operators around
 * the integer operators may round in another order.
 */
const mostDifference = 0.001;

/** Describes the first difference between two outputs. Returns undefined if every difference is permitted. */
export function differenceOf(original: Measured, rewritten: Measured): string | undefined {
  for (const [i, line] of original.lines.entries()) {
    const other = rewritten.lines[i];
    if (other?.audio.length !== line.audio.length) return `the audio of text ${i + 1} has another length`;
    const largest = largestDifference(line.audio, other.audio);
    if (!(largest <= mostDifference))
      return `the audio of text ${i + 1} differs by ${largest.toFixed(4)} of full scale`;
    if (line.samples.some((count, symbol) => count !== other.samples[symbol])) {
      return `the sounds of text ${i + 1} have other durations`;
    }
  }
  return undefined;
}

function largestDifference(one: Float32Array, other: Float32Array): number {
  let largest = 0;
  for (const [i, sample] of one.entries()) {
    const difference = Math.abs(sample - (other[i] ?? 0));
    if (!(difference <= largest)) largest = difference; // A negated comparison is also true for NaN.
  }
  return largest;
}

/** The errors of a line that was synthesized in windows. */
export interface WindowErrors {
  /** The ratio between the whole line with the same means and the error of its windows, in decibels. */
  readonly seamDecibels: number;
  /** The change of the line's level by the means of its voice, in decibels. */
  readonly levelDecibels: number;
}

/**
 * The lowest accepted ratio. Windows of Kokoro have 15 to 18 dB, because their 8-bit values are scaled
 * separately. Windows with their own means have 0 to 2 dB (docs/evidence/first-audio.md).
 */
const leastSeamDecibels = 10;
/** The largest accepted change of the level. With the means of another voice, the change is 6 dB or more. */
const mostLevelDecibels = 3;

/**
 * Calculates the errors of windows.
 * @param own the whole line with its own means.
 * @param whole the whole line with the means of its voice.
 * @param windows the joined windows with the means of its voice.
 */
export function windowErrors(audio: {
  readonly own: Float32Array;
  readonly whole: Float32Array;
  readonly windows: Float32Array;
}): WindowErrors {
  const { own, whole, windows } = audio;
  const error = whole.map((sample, i) => sample - (windows[i] ?? 0));
  return {
    seamDecibels: decibels(energyOf(whole), energyOf(error)),
    levelDecibels: decibels(energyOf(windows), energyOf(own)),
  };
}

/** Describes the first error that is not accepted. */
export function seamProblem(errors: readonly WindowErrors[]): string | undefined {
  for (const [i, { seamDecibels, levelDecibels }] of errors.entries()) {
    // The negated comparisons are also true for NaN.
    if (!(seamDecibels >= leastSeamDecibels))
      return `the windows of text ${i + 1} are ${seamDecibels.toFixed(1)} dB above their error; ${leastSeamDecibels} dB are required`;
    if (!(Math.abs(levelDecibels) <= mostLevelDecibels))
      return `the means of the voice change the level of text ${i + 1} by ${levelDecibels.toFixed(1)} dB; ${mostLevelDecibels} dB are allowed`;
  }
  return undefined;
}

function energyOf(samples: Float32Array): number {
  return samples.reduce((sum, sample) => sum + sample * sample, 0);
}

function decibels(energy: number, reference: number): number {
  return 10 * Math.log10(energy / reference);
}
