import type { Sampling } from "../../contract/speech.ts";

/** The recent codes of one kind. The repetition penalty makes these codes less likely. */
export class RecentCodes {
  readonly #codes: number[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  add(code: number): void {
    this.#codes.push(code);
    if (this.#codes.length > this.#most) this.#codes.shift();
  }

  distinct(): ReadonlySet<number> {
    return new Set(this.#codes);
  }
}

/**
 * Selects codes by a model's scores in the order of vLLM: the penalty first, then the temperature, then
 * top_p. Temperature 0 selects the code with the highest score.
 */
export class Sampler {
  readonly #sampling: Sampling;
  readonly #random: () => number;

  constructor(sampling: Sampling, random: () => number) {
    this.#sampling = sampling;
    this.#random = random;
  }

  /**
   * Selects a code.
   * @param scores the scores of all codes, which the function changes in place.
   */
  pick(scores: Float32Array, recent: ReadonlySet<number>): number {
    const { repetitionPenalty, temperature, topP } = this.#sampling;
    for (const code of recent) {
      const score = scores[code] ?? 0;
      scores[code] = score > 0 ? score / repetitionPenalty : score * repetitionPenalty;
    }
    const best = indexOfHighest(scores);
    if (temperature === 0) return best;
    const highest = scores[best] ?? 0;
    let total = 0;
    for (let i = 0; i < scores.length; i++) {
      const weight = Math.exp(((scores[i] ?? highest) - highest) / temperature);
      scores[i] = weight;
      total += weight;
    }
    const kept = topP < 1 ? keepLikeliest(scores, topP * total) : total;
    let left = this.#random() * kept;
    for (let i = 0; i < scores.length; i++) {
      left -= scores[i] ?? 0;
      if (left < 0) return i;
    }
    return best;
  }
}

function indexOfHighest(scores: Float32Array): number {
  let best = 0;
  for (let i = 1; i < scores.length; i++) if ((scores[i] as number) > (scores[best] as number)) best = i;
  return best;
}

/**
 * Keeps the highest weights until their sum reaches `share`, and sets the other weights to 0.
 * @returns the sum of the kept weights.
 */
function keepLikeliest(weights: Float32Array, share: number): number {
  const order = Array.from(weights.keys()).sort((a, b) => (weights[b] as number) - (weights[a] as number));
  let sum = 0;
  for (const place of order) {
    if (sum >= share) weights[place] = 0;
    else sum += weights[place] as number;
  }
  return sum;
}
