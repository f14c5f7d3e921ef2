import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/**
 * Creates a temporary folder for a test file. The folder is removed after the last test and after all other
 * hooks.
 */
export function folderOfTests(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `svc-tts-${name}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
