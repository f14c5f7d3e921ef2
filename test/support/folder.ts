import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A folder of this test file, removed after its last test and whatever other hooks do then. */
export function folderOfTests(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `svc-tts-${name}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
