import { createHash } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";

/**
 * Writes a file under a temporary name and renames it, so that the file is never incomplete.
 * @returns the SHA-256 digest of the content.
 */
export async function replaceFile(path: string, content: Uint8Array): Promise<string> {
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
  return createHash("sha256").update(content).digest("hex");
}
