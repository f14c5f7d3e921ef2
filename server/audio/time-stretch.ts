/**
 * Waveform-similarity overlap-add (Verhelst and Roelands, 1993): changes the length of speech and keeps its
 * pitch. Frames are taken at the expected position of the input, shifted slightly to where it resembles the
 * continuation of the last frame.
 */

/** A run of samples and the factor of its length; 1 means unchanged. */
export interface StretchedRun {
  readonly samples: number;
  readonly stretch: number;
}

const frameSeconds = 0.03;
const searchSeconds = 0.012;
/**
 * The search first checks every position that is a multiple of this step, then each position around the
 * best.
 */
const coarseStep = 4;

/** Yields the pieces of the runs in order. The length of each run is exactly `stretchedLength`. */
export function* stretchRuns(
  input: Int16Array,
  rate: number,
  runs: readonly StretchedRun[],
): Generator<Int16Array, void, void> {
  const map = new TimeMap(runs);
  const frames = framesAt(rate);
  let from = 0;
  for (let at = 0; at < map.length; at += frames.half) {
    const next = similar(input, from + frames.half, map.inputAt(at + frames.half), frames);
    yield overlapped(input, from, next, Math.min(frames.half, map.length - at), frames);
    from = next;
  }
}

/** Stretches speech by one factor while it arrives. */
export interface StreamStretcher {
  /** @returns the samples that are final. */
  push(samples: Int16Array): Int16Array;
  /** @returns the rest. The total length is that of `stretchedLength`. */
  finish(): Int16Array;
}

/** @param stretch above 0. */
export function createStreamStretcher(rate: number, stretch: number): StreamStretcher {
  const frames = framesAt(rate);
  const { half, search } = frames;
  /** The part of the input that may still be needed. */
  let input = new Int16Array(0);
  /** Number of samples before `input`, which are no longer needed. */
  let gone = 0;
  let from = 0;
  let at = 0;
  const makeUntil = (length: number, isWhole: boolean): Int16Array => {
    const pieces: Int16Array[] = [];
    const there = gone + input.length;
    while (at < length) {
      const due = Math.round((at + half) / stretch);
      const needed = Math.max(due + search, from + half) + half + coarseStep;
      if (!isWhole && needed > there) break;
      const next = gone + similar(input, from - gone + half, due - gone, frames);
      pieces.push(overlapped(input, from - gone, next - gone, Math.min(half, length - at), frames));
      from = next;
      at += half;
    }
    const kept = Math.max(0, Math.min(from, Math.round(at / stretch) - search) - half - coarseStep - gone);
    input = input.slice(kept);
    gone += Math.min(kept, there - gone);
    return joined(pieces);
  };
  return {
    push: (samples) => {
      input = joined([input, samples]);
      return makeUntil(Number.POSITIVE_INFINITY, false);
    },
    finish: () => makeUntil(stretchedLength({ samples: gone + input.length, stretch }), true),
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

/** Crossfades from one frame to the next. */
function overlapped(
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

function joined(pieces: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const all = new Int16Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** Number of samples that a run becomes. */
export function stretchedLength({ samples, stretch }: StretchedRun): number {
  return Math.round(samples * stretch);
}

/**
 * Finds the position near the expected one from which the input most resembles the continuation of the last
 * frame.
 */
function similar(
  input: Int16Array,
  following: number,
  due: number,
  { half, search }: Pick<Frames, "half" | "search">,
): number {
  if (Math.abs(due - following) <= 1) return following;
  const likeness = (place: number) => correlation(input, following - half, place - half, half);
  const coarse = best(due - search, due + search, coarseStep, likeness);
  return best(coarse - coarseStep + 1, coarse + coarseStep - 1, 1, likeness);
}

function best(from: number, to: number, step: number, score: (place: number) => number): number {
  let place = from;
  let highest = Number.NEGATIVE_INFINITY;
  for (let candidate = from; candidate <= to; candidate += step) {
    const reached = score(candidate);
    if (reached <= highest) continue;
    highest = reached;
    place = candidate;
  }
  return place;
}

/** Normalized by the energy of the candidate. Every second sample is sufficient. */
function correlation(input: Int16Array, wanted: number, place: number, length: number): number {
  let product = 0;
  let energy = 1;
  for (let i = 0; i < length; i += 2) {
    const sample = input[place + i] ?? 0;
    product += sample * (input[wanted + i] ?? 0);
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

  inputAt(place: number): number {
    let begin = { input: 0, output: 0 };
    for (const end of this.#ends) {
      if (place < end.output) {
        const share = (place - begin.output) / (end.output - begin.output);
        return Math.round(begin.input + share * (end.input - begin.input));
      }
      begin = end;
    }
    return begin.input + place - begin.output;
  }
}
