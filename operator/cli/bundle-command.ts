import { writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { packTar } from "modern-tar";
import { UsageError } from "../../lib/usage-error.ts";
import { collectBundle, type File } from "./bundle.ts";
import { parseOptions, reachCluster, type Terminal } from "./terminal.ts";

/**
 * Runs `tts-operator support-bundle [NAME]`, which writes a tar.gz file, or with `--file -` writes to
 * standard output.
 */
export async function bundleCommand(
  words: readonly string[],
  terminal: Terminal,
  version: string,
): Promise<number> {
  const options = parseOptions("support-bundle", words, ["namespace", "kubeconfig", "context", "file"]);
  const [name, ...more] = options.positionals;
  if (more.length > 0)
    throw new UsageError(
      "support-bundle accepts the name of one TtsDeployment; without a name, it covers the whole namespace",
    );
  const { client, namespace } = await reachCluster(options, terminal);
  try {
    const now = Date.now();
    const { files, unseen } = await collectBundle(client, { namespace, name, now, version });
    const stamp = new Date(now)
      .toISOString()
      .replace(/\.\d+Z$/, "")
      .replaceAll(/[-:]/g, "");
    const folder = `tts-support-${name ?? namespace}-${stamp}`;
    const archive = await tarball(
      files.map(({ path, content }) => ({ path: `${folder}/${path}`, content })),
      now,
    );
    await deliver(options.flags.file ?? `${folder}.tar.gz`, archive, terminal);
    terminal.complain(
      `The archive has ${files.length} files and ${archive.length} bytes. Values of Secrets were removed. Read the files before you send them.\n`,
    );
    for (const line of unseen) terminal.complain(`The command could not read ${line}.\n`);
    return 0;
  } finally {
    client.close();
  }
}

/**
 * Returns a tar.gz archive of files that only their owner can read. `at` is the time of the files, in
 * milliseconds since the epoch.
 */
export async function tarball(files: readonly File[], at: number): Promise<Buffer> {
  const owner = { mode: 0o600, uid: 0, gid: 0, mtime: new Date(at) };
  const entries = files.map(({ path, content }) => ({
    header: { name: path, size: Buffer.byteLength(content), ...owner },
    body: content,
  }));
  return gzipSync(await packTar(entries));
}

async function deliver(path: string, archive: Buffer, terminal: Terminal): Promise<void> {
  if (path === "-") return terminal.print(archive);
  try {
    await writeFile(path, archive, { flag: "wx", mode: 0o600 });
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (code === "EEXIST") throw new UsageError(`${path} exists; name another file with --file`, { cause });
    throw new UsageError(
      `${path} cannot be written; name another file with --file, or - for standard output`,
      { cause },
    );
  }
  terminal.print(`${path}\n`);
}
