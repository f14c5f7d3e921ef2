import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const down = join(import.meta.dirname, "../cluster/down.sh");
/** `test/cluster/up.sh` writes this file first, and `test/cluster/down.sh` removes it. */
const state = join(process.env.SVC_TTS_CACHE ?? join(homedir(), ".cache", "svc-tts"), "cluster", "boot");

/**
 * Records whether the local cluster runs. Call this function before the tests. The returned function removes
 * the cluster only if the tests started it, and only once, because another run may start a cluster afterwards.
 */
export function removeStartedCluster(
  remove: () => Promise<unknown> = () => promisify(execFile)(down),
  stateFile = state,
): () => Promise<void> {
  let isOurs = !existsSync(stateFile);
  return async () => {
    if (!isOurs || !existsSync(stateFile)) return;
    isOurs = false;
    await remove();
  };
}
