import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../server/engine/arcana/random.ts";
import { Sampler } from "../../../server/engine/arcana/sampler.ts";

const plain = { repetitionPenalty: 1, temperature: 1, topP: 1, maxTokens: 1200 };
const none: ReadonlySet<number> = new Set();

/** Returns the share of each code in a thousand draws. */
function shares(scores: readonly number[], change: Partial<typeof plain>, recent = none): number[] {
  const sampler = new Sampler({ ...plain, ...change }, seededRandom(5));
  const counts = scores.map(() => 0);
  for (let i = 0; i < 1000; i++) {
    const code = sampler.pick(Float32Array.from(scores), recent);
    counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts.map((count) => count / 1000);
}

describe("the sampler", () => {
  test("samples from the softmax of the scores divided by the temperature", () => {
    const [first, second] = shares([Math.log(3), 0], {}) as [number, number];
    expect(first).toBeCloseTo(0.75, 1);
    expect(second).toBeCloseTo(0.25, 1);
    expect(shares([Math.log(3), 0], { temperature: 0.25 })[0]).toBeGreaterThan(0.97);
    expect(shares([Math.log(3), 0], { temperature: 4 })[0]).toBeLessThan(0.62);
  });

  test("selects the best code at temperature 0, without randomness", () => {
    const neverCalled = () => {
      throw new Error("the sampler used a random number");
    };
    const sampler = new Sampler({ ...plain, temperature: 0 }, neverCalled);
    expect(sampler.pick(Float32Array.of(0.1, 2, 1.9), none)).toBe(1);
  });

  test("keeps the fewest most likely codes that reach top_p", () => {
    const scores = [0.1, 0.5, 0.15, 0.25].map(Math.log);
    expect(shares(scores, { topP: 0.7 }).map((share) => share > 0)).toEqual([false, true, false, true]);
    expect(shares(scores, { topP: 0.01 })).toEqual([0, 1, 0, 0]);
  });

  test("makes recent codes less likely, for scores above and below zero", () => {
    expect(shares([2, 2], { repetitionPenalty: 2 }, new Set([0]))[0]).toBeLessThan(0.35);
    expect(shares([-2, -2], { repetitionPenalty: 2 }, new Set([0]))[0]).toBeLessThan(0.2);
  });
});
