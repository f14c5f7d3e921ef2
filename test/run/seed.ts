import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Returns the given seed, or a new seed. Tests derive their random choices from the environment variable
 * SEED.
 */
export function chooseSeed(given: string | undefined): string {
  if (given) return given;
  return String(Math.floor(Math.random() * 2 ** 31));
}

/**
 * Parses the SEED of `make test`, which must be an integer, because the next run uses the following integer.
 */
export function readSeed(given: string): number {
  if (!/^\d{1,10}$/.test(given)) throw new Error(`SEED must be a whole number, not '${given}'`);
  return Number(given);
}

/**
 * Returns the successor of the seed in the file, so that consecutive runs on a machine make all choices in
 * turn. On a machine without earlier runs, the seed is derived from the commit.
 */
export function nextSeed(file: string): number {
  const seed = (lastSeed(file) ?? commitNumber()) + 1;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${seed}\n`);
  return seed;
}

function lastSeed(file: string): number | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function commitNumber(): number {
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" });
  return Number.parseInt(commit.slice(0, 6), 16);
}
