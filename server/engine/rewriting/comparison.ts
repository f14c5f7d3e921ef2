/** The output of a graph for the fixed lines, and its duration. */
export interface Measured {
  readonly lines: readonly { readonly audio: Float32Array; readonly samples: readonly number[] }[];
  /** Seconds of work for each second of audio. */
  readonly realTimeFactor: number;
}

/**
 * Allowed difference relative to full scale: float operators around the integer ones may round in another
 * order.
 */
const mostDifference = 0.001;

/** Explains why two outputs differ. Undefined if they do not. */
export function differenceOf(original: Measured, rewritten: Measured): string | undefined {
  for (const [i, line] of original.lines.entries()) {
    const other = rewritten.lines[i];
    if (other?.audio.length !== line.audio.length) return `line ${i + 1} has another length`;
    const largest = largestDifference(line.audio, other.audio);
    if (!(largest <= mostDifference)) return `line ${i + 1} differs by ${largest.toFixed(4)} of full scale`;
    if (line.samples.some((count, symbol) => count !== other.samples[symbol])) {
      return `line ${i + 1} has other durations`;
    }
  }
  return undefined;
}

function largestDifference(one: Float32Array, other: Float32Array): number {
  let largest = 0;
  for (const [i, sample] of one.entries()) {
    const difference = Math.abs(sample - (other[i] ?? 0));
    if (!(difference <= largest)) largest = difference; // The negated comparison is also true for NaN.
  }
  return largest;
}
