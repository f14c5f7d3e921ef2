import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** The limit is long, because the installation of large packages takes minutes on a busy machine. */
const installLimitMs = 900_000;

/**
 * Returns the Python of a virtual environment with these packages (`name==version`). The environment is
 * created on first use, and cached by the hash of the packages. The machine needs `python3` with `venv`.
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

/** Returns whether `pythonWith` has already installed these packages. */
export function isInstalled(packages: readonly string[]): boolean {
  return existsSync(join(homeOf(packages), "installed"));
}

/**
 * The script that creates an environment. An incomplete environment has no file `installed`, and is
 * recreated.
 */
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
