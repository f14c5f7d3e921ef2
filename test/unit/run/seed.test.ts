import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { seededRandom, turnOf } from "../../support/seed.ts";

beforeEach(() => {
  vi.stubEnv("SEED", "41");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const sequence = (purpose: string) => {
  const random = seededRandom(purpose);
  return Array.from({ length: 20 }, () => random.below(1000));
};

it("seededRandom returns the same sequence for the same seed and purpose only", () => {
  const first = sequence("texts");
  expect(sequence("texts")).toEqual(first);
  expect(sequence("ports")).not.toEqual(first);
  vi.stubEnv("SEED", "42");
  expect(sequence("texts")).not.toEqual(first);
});

it("seededRandom returns numbers from the whole range", () => {
  const random = seededRandom("range");
  const numbers = Array.from({ length: 2000 }, () => random.below(10));
  expect(new Set(numbers)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
  expect(random.next()).toBeLessThan(1);
});

it("turnOf selects every item once for consecutive seeds", () => {
  const turns = Array.from({ length: 11 }, (_, run) => {
    vi.stubEnv("SEED", String(2_147_483_640 + run));
    return turnOf(11);
  });
  expect(new Set(turns).size).toBe(11);
});

it("turnOf accepts any text as the seed", () => {
  vi.stubEnv("SEED", "monday");
  expect(turnOf(11)).toBe(turnOf(11));
  expect(turnOf(11)).toBeLessThan(11);
});
