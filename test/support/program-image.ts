/** An image of programs that this machine has, as Debian's packages brought them: themselves, the libraries that they load and what they read. */
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { giveNodeImage } from "./node-images.ts";

const run = promisify(execFile);

/** Whom its containers run as. */
export const programUser = 65532;

export interface ProgramImage {
  readonly name: string;
  /** With what they load. */
  readonly programs: readonly string[];
  /** Files and folders, as they are. */
  readonly files?: readonly string[];
  /** Programs that have another path in the image: theirs there, and here. */
  readonly renamed?: Readonly<Record<string, string>>;
}

/** Makes it, with a shell, and gives it to the first node of the local cluster. */
export async function giveProgramImage({
  name,
  programs,
  files = [],
  renamed = {},
}: ProgramImage): Promise<void> {
  const layer = await mkdtemp(join(tmpdir(), "svc-tts-image-"));
  try {
    const all = ["/bin/sh", ...programs];
    const loaded = await librariesOf([...all, ...Object.values(renamed)]);
    await run("cp", ["--parents", "--recursive", "--dereference", ...all, ...loaded, ...files, layer]);
    for (const [there, here] of Object.entries(renamed)) {
      await mkdir(join(layer, dirname(there)), { recursive: true });
      await copyFile(here, join(layer, there));
    }
    await mkdir(join(layer, "etc"), { recursive: true });
    // PostgreSQL asks for the name of its user
    await writeFile(join(layer, "etc/passwd"), `svc:x:${programUser}:${programUser}::/:/bin/sh\n`);
    await giveNodeImage({ name, layer, config: { User: String(programUser) } });
  } finally {
    await rm(layer, { recursive: true });
  }
}

/** The loader among them. */
async function librariesOf(programs: readonly string[]): Promise<string[]> {
  const { stdout } = await run("ldd", programs);
  return [...new Set([...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path))];
}
