import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { FetchFailure } from "../fetch/failure.ts";

/**
 * Fetches packages with the clients of the registries. The clients use the machine's mirrors, proxies,
 * certificates and credentials. This file therefore contains no address of a registry.
 */

const run = promisify(execFile);

export interface RegistryContext {
  /** The folder of package archives, which are kept until the preset is complete. */
  readonly archives: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** A package of a registry. */
interface Fetched {
  readonly package: string;
  readonly version: string;
  /** The digest of the package's archive. */
  readonly sha256: string;
}

/** A file in a package. */
export interface PackageEntry extends Fetched {
  /** The name of the file inside the package. */
  readonly entry: string;
}

/**
 * Fetches a Python wheel.
 * @returns the path of the wheel.
 * @throws FetchFailure
 */
export async function fetchWheel(requested: Fetched, context: RegistryContext): Promise<string> {
  const folder = await folderFor("pypi", requested, context);
  const requirements = join(folder, "requirements.txt");
  const { package: name, version, sha256 } = requested;
  await writeFile(requirements, `${name}==${version} --hash=sha256:${sha256}\n`);
  const flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
  const pip = ["-m", "pip", "download", ...flags, "--requirement", requirements, "--dest", folder];
  return fetchOnce(folder, ".whl", () => runClient("python3", pip, "pip (Python)", requested, context));
}

/**
 * Fetches an npm package.
 * @returns the path of the tarball.
 * @throws FetchFailure
 */
export async function fetchTarball(requested: Fetched, context: RegistryContext): Promise<string> {
  const folder = await folderFor("npm", requested, context);
  const npm = ["pack", `${requested.package}@${requested.version}`, "--silent", "--pack-destination", folder];
  return fetchOnce(folder, ".tgz", () => runClient("npm", npm, "npm", requested, context));
}

async function folderFor(
  registry: string,
  { package: name, version }: Fetched,
  { archives }: RegistryContext,
) {
  const folder = join(archives, registry, `${name.replaceAll("/", "_")}-${version}`);
  await mkdir(folder, { recursive: true });
  return folder;
}

/** Returns the archive of an earlier attempt, or fetches the archive. */
async function fetchOnce(folder: string, ending: string, fetchNow: () => Promise<void>): Promise<string> {
  const find = async () => (await readdir(folder)).find((name) => name.endsWith(ending));
  const existing = await find();
  if (existing === undefined) await fetchNow();
  const name = existing ?? (await find());
  if (name === undefined) throw new FetchFailure(`the registry client wrote no ${ending} file to ${folder}`);
  return join(folder, name);
}

async function runClient(
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
    if (code === "ENOENT")
      throw new FetchFailure(
        `${client} is not installed on this machine; install it, or use another source`,
        { cause },
      );
    const reason = stderr.trim().split("\n").at(-1) || (cause as Error).message;
    throw new FetchFailure(`${client} could not fetch ${name} ${version}: ${reason}`, { cause });
  }
}
