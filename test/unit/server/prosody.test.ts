import { expect, test } from "vitest";
import { type PhraseProsody, plainProsody, sampledProsody } from "../../../server/model/prosody.ts";

const sampling = { repetitionPenalty: 1, temperature: 0.5, topP: 1, maxTokens: 1200 };

/** The same numbers in every run, spread over [0, 1). */
function cycle(): () => number {
  let at = 0;
  return () => (at = (at + 0.381_966) % 1);
}

function phrases(change: Partial<typeof sampling>, random = cycle()): PhraseProsody[] {
  const prosody = sampledProsody({ ...sampling, ...change }, random);
  return Array.from({ length: 200 }, prosody);
}

function spread(manners: readonly PhraseProsody[]): number {
  const pitches = manners.map(({ pitch }) => pitch);
  return Math.max(...pitches) - Math.min(...pitches);
}

test("temperature 0 draws nothing: it is the same whatever the dice say", () => {
  const loaded = () => {
    throw new Error("a die was thrown");
  };
  expect(phrases({ temperature: 0 }, loaded)).toEqual(Array(200).fill(plainProsody()));
});

test("the higher the temperature, the wider the spread", () => {
  expect(spread(phrases({ temperature: 0.1 }))).toBeLessThan(spread(phrases({ temperature: 2 })));
});

test("a small top_p leaves only the likeliest manner", () => {
  expect(spread(phrases({ temperature: 2, topP: 0.05 }))).toBe(0);
});

test("a repetition penalty moves it away from what was spoken last", () => {
  const repeats = (manners: readonly PhraseProsody[]) =>
    manners.filter(({ pitch }, index) => pitch === manners[index - 1]?.pitch).length;
  expect(repeats(phrases({ repetitionPenalty: 2 }))).toBeLessThan(repeats(phrases({ repetitionPenalty: 1 })));
  expect(repeats(phrases({ temperature: 0 }))).toBe(199);
  expect(repeats(phrases({ temperature: 0, repetitionPenalty: 1.5 }))).toBeLessThan(150);
});

test("however it is sampled, speech stays near the voice's own manner", () => {
  for (const { pitch, stretch, pause } of phrases({ temperature: 100, repetitionPenalty: 10 })) {
    expect(Math.abs(pitch - 1)).toBeLessThanOrEqual(0.1001);
    expect(Math.abs(stretch - 1)).toBeLessThanOrEqual(0.0801);
    expect(Math.abs(pause - 1)).toBeLessThanOrEqual(0.4001);
  }
});
