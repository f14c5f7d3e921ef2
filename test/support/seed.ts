/**
 * Derives all random choices of a run of the tests from one seed. The seed is the environment variable
 * `SEED`, which the runner sets and prints. The same seed repeats the choices of a run.
 */
import { createHash } from "node:crypto";
import { chooseSeed } from "../run/seed.ts";

/**
 * Returns the seed of the run. If `SEED` is not set, for example when Vitest is run directly, chooses a seed
 * and prints it.
 */
function runSeed(): string {
  const { SEED: current } = process.env;
  if (current) return current;
  const seed = chooseSeed(undefined);
  process.env.SEED = seed;
  console.info(`==> SEED=${seed} repeats the choices of this test file`);
  return seed;
}

/** Selects one of `count` turns for this run. Consecutive seeds select each turn once in `count` runs. */
export function turnOf(count: number): number {
  const seed = runSeed();
  return Number(/^\d+$/.test(seed) ? BigInt(seed) % BigInt(count) : BigInt(digest(seed) % count));
}

export interface SeededRandom {
  /** Returns a number from 0 to below 1. */
  next(): number;
  /** Returns an integer from 0 to below `end`. */
  below(end: number): number;
}

/**
 * Returns random numbers that depend only on the seed of the run and on `purpose`, and not on other tests.
 */
export function seededRandom(purpose: string): SeededRandom {
  const next = pseudoRandom(digest(`${runSeed()} ${purpose}`));
  return { next, below: (end) => Math.floor(next() * end) };
}

/** Generates numbers from 0 to below 1 with mulberry32 by Tommy Ettinger (public domain). */
export function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function digest(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32LE();
}
