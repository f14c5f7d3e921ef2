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
