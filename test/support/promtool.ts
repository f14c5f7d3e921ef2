import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Prometheus' own checker: Debian's, unpacked into the cache without installing a service. */
export async function promtool(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run(await program(), args);
}

async function program(): Promise<string> {
  if (existsSync("/usr/bin/promtool")) return "/usr/bin/promtool";
  const cache = join(homedir(), ".cache/svc-tts");
  const folder = join(cache, "promtool");
  const path = join(folder, "usr/bin/promtool");
  if (existsSync(path)) return path;
  process.stderr.write("==> fetching Debian's prometheus package for promtool\n");
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(cache, "promtool."));
  await run("apt-get", ["download", "-qq", "prometheus"], { cwd: work }).catch(async () => {
    await run("apt-get", ["update", "-qq"]);
    await run("apt-get", ["download", "-qq", "prometheus"], { cwd: work });
  });
  const [archive = ""] = await readdir(work);
  await run("dpkg", ["-x", archive, "."], { cwd: work });
  await rename(work, folder).catch(() => rm(work, { recursive: true }));
  return path;
}
