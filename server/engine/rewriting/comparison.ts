/** What a graph said on the fixed lines, and how long it took. */
export interface Measured {
  readonly lines: readonly { readonly audio: Float32Array; readonly samples: readonly number[] }[];
  /** Of work for a second of audio. */
  readonly realTimeFactor: number;
}

/** Of full scale: float operators around the integer ones may round in another order. */
const mostDifference = 0.001;

/** Why one graph does not say what the other says; undefined where it does. */
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
    if (!(difference <= largest)) largest = difference; // also what is no number
  }
  return largest;
}
