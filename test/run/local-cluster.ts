import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const down = join(import.meta.dirname, "../cluster/down.sh");
/** `up.sh` writes this file first, and `down.sh` removes it. */
const state = join(process.env.SVC_TTS_CACHE ?? join(homedir(), ".cache", "svc-tts"), "cluster", "boot");

/**
 * Called before tests run. The returned function removes the local cluster if the tests started it, and
 * otherwise does nothing.
 */
export function removeStartedCluster(): () => Promise<void> {
  const ranBefore = existsSync(state);
  return async () => {
    if (!ranBefore && existsSync(state)) await promisify(execFile)(down);
  };
}
