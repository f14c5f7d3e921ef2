import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { access, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const installLimitMs = 300_000;

/**
 * The Python of a virtual environment with these packages (`name==version`), made on first use and kept by their hash.
 * Needs `python3` with `venv` on the machine.
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

/** A half-made environment has no file `installed`; it is made anew. */
async function install(home: string, packages: readonly string[]): Promise<void> {
  await rm(home, { recursive: true, force: true });
  await mkdir(home, { recursive: true });
  await run("python3", ["-m", "venv", home], { timeout: installLimitMs });
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages];
  await run(join(home, "bin", "python"), pip, { timeout: installLimitMs });
  await writeFile(join(home, "installing"), packages.join("\n"));
  await rename(join(home, "installing"), join(home, "installed"));
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
