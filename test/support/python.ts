import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { access, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const installLimitMs = 300_000;

/**
 * Returns the Python of a virtual environment with these packages (`name==version`). It is created on first
 * use, and cached by their hash. Needs `python3` with `venv` on the machine.
 */
export async function pythonWith(packages: readonly string[]): Promise<string> {
  const hash = createHash("sha256").update(packages.join("\n")).digest("hex").slice(0, 16);
  const home = join(homedir(), ".cache", "svc-tts", "python", hash);
  const python = join(home, "bin", "python");
  if (await exists(join(home, "installed"))) return python;
  process.stderr.write(`==> installing Python packages: ${packages.join(" ")}\n`);
  await install(home, packages);
  return python;
}

/**
 * Locked against concurrent installs. An incomplete environment has no file `installed`, and is recreated.
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

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
