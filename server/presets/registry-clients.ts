import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { FetchFailure } from "../fetch/failure.ts";
import type { PackageEntry } from "./preset.ts";

/**
 * Fetches packages with the registries' own clients, which use the machine's mirrors, proxies, certificates
 * and credentials. This file contains no address of a registry.
 */

const run = promisify(execFile);

export interface RegistryContext {
  /** The folder of archives, which are kept until the preset is complete. */
  readonly archives: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

type Fetched = Pick<PackageEntry, "package" | "version" | "sha256">;

/** @returns the path of the wheel. @throws FetchFailure */
export async function fetchWheel(wanted: Fetched, context: RegistryContext): Promise<string> {
  const folder = await folderFor("pypi", wanted, context);
  const requirements = join(folder, "requirements.txt");
  const { package: name, version, sha256 } = wanted;
  await writeFile(requirements, `${name}==${version} --hash=sha256:${sha256}\n`);
  const flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
  const pip = ["-m", "pip", "download", ...flags, "--requirement", requirements, "--dest", folder];
  return fetched(folder, ".whl", () => ask("python3", pip, "pip (Python)", wanted, context));
}

/** @returns the path of the tarball. @throws FetchFailure */
export async function fetchTarball(wanted: Fetched, context: RegistryContext): Promise<string> {
  const folder = await folderFor("npm", wanted, context);
  const npm = ["pack", `${wanted.package}@${wanted.version}`, "--silent", "--pack-destination", folder];
  return fetched(folder, ".tgz", () => ask("npm", npm, "npm", wanted, context));
}

async function folderFor(
  registry: string,
  { package: name, version }: Fetched,
  { archives }: RegistryContext,
) {
  const own = join(archives, registry, `${name.replaceAll("/", "_")}-${version}`);
  await mkdir(own, { recursive: true });
  return own;
}

/** Returns the archive of an earlier attempt, or fetches it. */
async function fetched(folder: string, ending: string, fetchNow: () => Promise<void>): Promise<string> {
  const find = async () => (await readdir(folder)).find((name) => name.endsWith(ending));
  const known = await find();
  if (known === undefined) await fetchNow();
  const name = known ?? (await find());
  if (name === undefined) throw new FetchFailure(`no ${ending} came into ${folder}`);
  return join(folder, name);
}

async function ask(
  program: string,
  args: readonly string[],
  client: string,
  { package: name, version }: Fetched,
  { env, signal }: RegistryContext,
): Promise<void> {
  try {
    await run(program, [...args], { env: { ...env }, signal, maxBuffer: 4 * 1024 * 1024 });
  } catch (cause) {
    signal.throwIfAborted();
    const { code, stderr = "" } = cause as { code?: unknown; stderr?: string };
    if (code === "ENOENT") throw new FetchFailure(`${client} is not installed here`, { cause });
    const reason = stderr.trim().split("\n").at(-1) || (cause as Error).message;
    throw new FetchFailure(`${client} cannot fetch ${name} ${version}: ${reason}`, { cause });
  }
}
