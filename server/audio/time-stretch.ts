/**
 * Changes the length of speech and keeps its pitch, by waveform-similarity overlap-add (Verhelst and
 * Roelands, 1993). Each frame starts near its expected position in the input, at the position that most
 * resembles the continuation of the previous frame.
 */

/** A run of samples and the factor for its length. The factor 1 leaves the run unchanged. */
export interface StretchedRun {
  readonly samples: number;
  readonly stretch: number;
}

const frameSeconds = 0.03;
const searchSeconds = 0.012;
/**
 * The step of the first search. A second search checks each position around the best position of the first
 * search.
 */
const coarseStep = 4;

/**
 * Stretches runs, and yields the resulting pieces in order. The length of each run is exactly
 * `stretchedLength`.
 */
export function* stretchRuns(
  input: Int16Array,
  rate: number,
  runs: readonly StretchedRun[],
): Generator<Int16Array, void, void> {
  const map = new TimeMap(runs);
  const frames = framesAt(rate);
  let from = 0;
  for (let at = 0; at < map.length; at += frames.half) {
    const next = findSimilar(input, from + frames.half, map.inputAt(at + frames.half), frames);
    yield crossfade(input, from, next, Math.min(frames.half, map.length - at), frames);
    from = next;
  }
}

/** Stretches speech by one factor as it arrives. */
export interface StreamStretcher {
  /**
   * Adds samples.
   * @returns the samples that are final.
   */
  push(samples: Int16Array): Int16Array;
  /**
   * Ends the speech.
   * @returns the remaining samples. The total length is `stretchedLength`.
   */
  finish(): Int16Array;
}

/**
 * Creates a stretcher.
 * @param stretch the factor for the length, above 0.
 */
export function createStreamStretcher(rate: number, stretch: number): StreamStretcher {
  const frames = framesAt(rate);
  const { half, search } = frames;
  /** The part of the input that is still needed. */
  let input = new Int16Array(0);
  /** The number of samples before `input`, which are not needed any more. */
  let dropped = 0;
  let from = 0;
  let at = 0;
  const stretchUntil = (length: number, isWhole: boolean): Int16Array => {
    const pieces: Int16Array[] = [];
    const available = dropped + input.length;
    while (at < length) {
      const due = Math.round((at + half) / stretch);
      const needed = Math.max(due + search, from + half) + half + coarseStep;
      if (!isWhole && needed > available) break;
      const next = dropped + findSimilar(input, from - dropped + half, due - dropped, frames);
      pieces.push(crossfade(input, from - dropped, next - dropped, Math.min(half, length - at), frames));
      from = next;
      at += half;
    }
    const unneeded = Math.max(
      0,
      Math.min(from, Math.round(at / stretch) - search) - half - coarseStep - dropped,
    );
    input = input.slice(unneeded);
    dropped += Math.min(unneeded, available - dropped);
    return joinSamples(pieces);
  };
  return {
    push: (samples) => {
      input = joinSamples([input, samples]);
      return stretchUntil(Number.POSITIVE_INFINITY, false);
    },
    finish: () => stretchUntil(stretchedLength({ samples: dropped + input.length, stretch }), true),
  };
}

interface Frames {
  readonly half: number;
  readonly search: number;
  readonly fade: Float32Array;
}

function framesAt(rate: number): Frames {
  const half = Math.round((rate * frameSeconds) / 2);
  const fade = Float32Array.from(
    { length: half },
    (_, i) => Math.sin((Math.PI * (i + 0.5)) / (2 * half)) ** 2,
  );
  return { half, search: Math.round(rate * searchSeconds), fade };
}

/** Returns a crossfade from one frame to the next. */
function crossfade(
  input: Int16Array,
  from: number,
  next: number,
  length: number,
  { half, fade }: Frames,
): Int16Array {
  const piece = new Int16Array(length);
  for (let i = 0; i < length; i++) {
    const leaving = input[from + i] ?? 0;
    piece[i] = Math.round(leaving + (fade[i] ?? 0) * ((input[next - half + i] ?? 0) - leaving));
  }
  return piece;
}

function joinSamples(pieces: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const all = new Int16Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** Returns the number of samples of a stretched run. */
export function stretchedLength({ samples, stretch }: StretchedRun): number {
  return Math.round(samples * stretch);
}

/**
 * Finds the position near the expected position at which the input most resembles the continuation of the
 * previous frame.
 */
function findSimilar(
  input: Int16Array,
  following: number,
  due: number,
  { half, search }: Pick<Frames, "half" | "search">,
): number {
  if (Math.abs(due - following) <= 1) return following;
  const similarity = (position: number) => correlation(input, following - half, position - half, half);
  const coarse = best(due - search, due + search, coarseStep, similarity);
  return best(coarse - coarseStep + 1, coarse + coarseStep - 1, 1, similarity);
}

function best(from: number, to: number, step: number, score: (position: number) => number): number {
  let position = from;
  let highest = Number.NEGATIVE_INFINITY;
  for (let candidate = from; candidate <= to; candidate += step) {
    const candidateScore = score(candidate);
    if (candidateScore <= highest) continue;
    highest = candidateScore;
    position = candidate;
  }
  return position;
}

/**
 * Returns the correlation of two parts of the input, normalized by the energy of the candidate. The function
 * uses every second sample, which is sufficient.
 */
function correlation(input: Int16Array, reference: number, position: number, length: number): number {
  let product = 0;
  let energy = 1;
  for (let i = 0; i < length; i += 2) {
    const sample = input[position + i] ?? 0;
    product += sample * (input[reference + i] ?? 0);
    energy += sample * sample;
  }
  return product / Math.sqrt(energy);
}

/** Maps a position in the output to a position in the input. */
class TimeMap {
  readonly length: number;
  readonly #ends: { readonly input: number; readonly output: number }[] = [];

  constructor(runs: readonly StretchedRun[]) {
    let end = { input: 0, output: 0 };
    for (const run of runs) {
      end = { input: end.input + run.samples, output: end.output + stretchedLength(run) };
      this.#ends.push(end);
    }
    this.length = end.output;
  }

  inputAt(position: number): number {
    let begin = { input: 0, output: 0 };
    for (const end of this.#ends) {
      if (position < end.output) {
        const share = (position - begin.output) / (end.output - begin.output);
        return Math.round(begin.input + share * (end.input - begin.input));
      }
      begin = end;
    }
    return begin.input + position - begin.output;
  }
}
