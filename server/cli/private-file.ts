import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Writes a file that only its owner may read, completely or not at all. Missing folders are created. */
export function writePrivate(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path);
}
