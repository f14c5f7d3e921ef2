/**
 * One seed for every choice that a run of the tests makes: `SEED` in the environment, which the runner sets and prints.
 * The same seed repeats a run exactly.
 */
import { createHash } from "node:crypto";
import { chooseSeed } from "../run/seed.ts";

/** A process without a seed, such as vitest alone, chooses one and prints it. */
function runSeed(): string {
  const { SEED: given } = process.env;
  if (given) return given;
  const seed = chooseSeed(undefined);
  process.env.SEED = seed;
  console.info(`==> SEED=${seed} repeats the choices of this test file`);
  return seed;
}

/**
 * Selects one of `count` turns for this run: with consecutive seeds each turn occurs once in `count` runs.
 */
export function turnOf(count: number): number {
  const seed = runSeed();
  return Number(/^\d+$/.test(seed) ? BigInt(seed) % BigInt(count) : BigInt(digest(seed) % count));
}

export interface SeededRandom {
  /** A number from 0 to below 1. */
  next(): number;
  /** An integer from 0 to below `end`. */
  below(end: number): number;
}

/** Depends only on the run's seed and on `purpose`, so that tests do not influence each other's choices. */
export function seededRandom(purpose: string): SeededRandom {
  const next = pseudoRandom(digest(`${runSeed()} ${purpose}`));
  return { next, below: (end) => Math.floor(next() * end) };
}

/** Generates numbers from 0 to below 1: mulberry32, by Tommy Ettinger (public domain). */
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
