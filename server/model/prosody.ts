import type { Sampling } from "../contract/speech.ts";

/** How one phrase is spoken against the voice's own manner; 1 leaves it. */
export interface PhraseProsody {
  readonly pitch: number;
  readonly stretch: number;
  readonly pause: number;
}

const plainManner: PhraseProsody = { pitch: 1, stretch: 1, pause: 1 };

/** Decides the manner of each phrase in turn. */
export type Prosody = () => PhraseProsody;

export const plainProsody: Prosody = () => plainManner;

/** Each step away from the middle is less likely; the score of the middle is `topScore`. */
const steps = [-4, -3, -2, -1, 0, 1, 2, 3, 4] as const;
const topScore = 4;
const scorePerSquaredStep = 0.5;
const memory = 6;
const stepSize: PhraseProsody = { pitch: 0.025, stretch: 0.02, pause: 0.1 };

/**
 * Samples the manner as a language model samples tokens: scores over a few steps, those spoken lately penalised, divided by
 * the temperature, cut at top_p. Temperature 0 takes the best score, so it is deterministic.
 * @param random uniform in [0, 1).
 */
export function sampledProsody(sampling: Sampling, random: () => number): Prosody {
  const pitch = new Sampler(sampling, random);
  const stretch = new Sampler(sampling, random);
  const pause = new Sampler(sampling, random);
  return () => ({
    pitch: 1 + pitch.next() * stepSize.pitch,
    stretch: 1 + stretch.next() * stepSize.stretch,
    pause: 1 + pause.next() * stepSize.pause,
  });
}

class Sampler {
  readonly #sampling: Sampling;
  readonly #random: () => number;
  readonly #spoken: number[] = [];

  constructor(sampling: Sampling, random: () => number) {
    this.#sampling = sampling;
    this.#random = random;
  }

  next(): number {
    const scores = steps.map((step) => this.#score(step));
    const step = this.#sampling.temperature === 0 ? best(scores) : this.#draw(scores);
    this.#spoken.push(step);
    if (this.#spoken.length > memory) this.#spoken.shift();
    return step;
  }

  #score(step: number): number {
    const score = topScore - scorePerSquaredStep * step * step;
    if (!this.#spoken.includes(step)) return score;
    const { repetitionPenalty } = this.#sampling;
    return score > 0 ? score / repetitionPenalty : score * repetitionPenalty;
  }

  #draw(scores: readonly number[]): number {
    const { temperature, topP } = this.#sampling;
    const highest = Math.max(...scores);
    const weighted = steps.map((step, i) => ({
      step,
      weight: Math.exp(((scores[i] ?? highest) - highest) / temperature),
    }));
    const nucleus = likeliest(weighted, topP);
    let left = this.#random() * nucleus.reduce((sum, { weight }) => sum + weight, 0);
    for (const { step, weight } of nucleus) {
      left -= weight;
      if (left < 0) return step;
    }
    return nucleus[0]?.step ?? 0;
  }
}

interface Weighted {
  readonly step: number;
  readonly weight: number;
}

/** The fewest likeliest steps whose share reaches top_p. */
function likeliest(weighted: readonly Weighted[], topP: number): Weighted[] {
  const sorted = weighted.toSorted((a, b) => b.weight - a.weight);
  const total = sorted.reduce((sum, { weight }) => sum + weight, 0);
  let share = 0;
  const kept: Weighted[] = [];
  for (const entry of sorted) {
    kept.push(entry);
    share += entry.weight / total;
    if (share >= topP) break;
  }
  return kept;
}

function best(scores: readonly number[]): number {
  return steps[scores.indexOf(Math.max(...scores))] ?? 0;
}
