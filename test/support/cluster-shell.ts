import { execFile } from "node:child_process";
import { join } from "node:path";

const scripts = join(import.meta.dirname, "../cluster");

/**
 * Runs these lines in a shell that has sourced what the scripts of test/cluster share: exit status and what was said.
 * @param prefix a command that starts the shell, as `unshare`.
 */
export function clusterShell(
  cache: string,
  lines: string,
  prefix: readonly string[] = [],
): Promise<{ code: number; said: string }> {
  const script = `set -euo pipefail; cd ${scripts}; source ./lib.sh; source ./state.sh; ${lines}`;
  const [command = "", ...rest] = [...prefix, "bash", "-c", script];
  return new Promise((resolve) => {
    execFile(command, rest, { env: { ...process.env, SVC_TTS_CACHE: cache } }, (error, _stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), said: stderr });
    });
  });
}
