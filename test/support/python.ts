import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** A framework with its models and codecs takes minutes on a busy machine. */
const installLimitMs = 900_000;

/**
 * Returns the Python of a virtual environment with these packages (`name==version`). It is created on first
 * use, and cached by their hash. Needs `python3` with `venv` on the machine.
 */
export async function pythonWith(packages: readonly string[]): Promise<string> {
  const home = homeOf(packages);
  const python = join(home, "bin", "python");
  if (isInstalled(packages)) return python;
  process.stderr.write(`==> installing Python packages: ${packages.join(" ")}\n`);
  await install(home, packages);
  return python;
}

function homeOf(packages: readonly string[]): string {
  const hash = createHash("sha256").update(packages.join("\n")).digest("hex").slice(0, 16);
  return join(homedir(), ".cache", "svc-tts", "python", hash);
}

/** Whether `pythonWith` has installed them before. */
export function isInstalled(packages: readonly string[]): boolean {
  return existsSync(join(homeOf(packages), "installed"));
}

/** Only one at a time. An incomplete environment has no file `installed`, and is recreated. */
const installation = `
[ -e "$home/installed" ] && exit
rm -rf "$home"
python3 -m venv "$home"
"$home/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
touch "$home/installed"`;

async function install(home: string, packages: readonly string[]): Promise<void> {
  await mkdir(dirname(home), { recursive: true });
  await run("flock", [`${home}.lock`, "sh", "-e", "-c", installation, "install", ...packages], {
    timeout: installLimitMs,
    env: { ...process.env, home },
  });
}
