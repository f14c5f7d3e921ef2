import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import type { CheckedFile } from "./model-spec.ts";

/**
 * Reads a file.
 * @throws Error if the file has another digest.
 */
export async function readChecked(expected: CheckedFile): Promise<Buffer> {
  const file = await readFile(expected.path);
  requireDigest(expected, createHash("sha256").update(file).digest("hex"));
  return file;
}

/**
 * Checks a file in small pieces, without the file in memory.
 * @throws Error if the file has another digest.
 */
export async function checkFile(expected: CheckedFile): Promise<void> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(expected.path)) hash.update(piece as Buffer);
  requireDigest(expected, hash.digest("hex"));
}

function requireDigest({ sha256 }: CheckedFile, actual: string): void {
  if (actual !== sha256) throw new Error(`the sha256 of the file is ${actual}; the manifest has ${sha256}`);
}
