/**
 * Runs an image of a registry: with Docker if it runs, and otherwise, as root, in a folder with the files of
 * the image. Both ways use the command line, the variables and the user of the image.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ProgramName } from "../../tools/release/programs.ts";
import { childrenOf } from "../support/processes.ts";

interface ImageConfig {
  readonly config: {
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly User: string;
  };
}

type Run = (program: ProgramName, ...words: string[]) => Promise<string>;

export class Container implements AsyncDisposable {
  readonly #child: ChildProcess;
  #output = "";

  private constructor(program: string, words: readonly string[]) {
    this.#child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
      });
    }
  }

  /** @param port the port of the API, in the container and on the machine */
  static async start(
    run: Run,
    reference: string,
    folder: string,
    port: { readonly offset: number; readonly api: number },
    words: readonly string[],
  ): Promise<Container> {
    const variable = `PORT_OFFSET=${port.offset}`;
    if (spawnSync("docker", ["info"], { stdio: "ignore", timeout: 10_000 }).status === 0) {
      const options = ["--rm", "--init", "--read-only", "--tmpfs", "/tmp", "--volume", "/data"];
      const published = ["--publish", `127.0.0.1:${port.api}:${port.api}`, "--env", variable];
      return new Container("docker", ["run", ...options, ...published, reference, ...words]);
    }
    const root = join(folder, "container");
    for (const mounted of ["proc", "dev"]) mkdirSync(join(root, mounted), { recursive: true });
    const archive = join(folder, "container.tar");
    await run("crane", "export", reference, archive);
    execFileSync("tar", ["--extract", "--file", archive, "--directory", root]);
    const { config } = JSON.parse(await run("crane", "config", reference)) as ImageConfig;
    const mounts = `mount -t proc proc ${root}/proc && mount --bind /dev ${root}/dev`;
    const entry = [
      "chroot",
      `--userspec=${config.User}`,
      root,
      "/usr/bin/env",
      "-i",
      ...config.Env,
      "HOME=/",
      variable,
    ];
    const command = [
      "sh",
      "-c",
      `${mounts} && exec "$@"`,
      "container",
      ...entry,
      ...config.Entrypoint,
      ...words,
    ];
    return new Container("unshare", ["--mount", "--pid", "--fork", "--kill-child", ...command]);
  }

  get output(): string {
    return this.#output;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, "exit");
    // unshare ignores SIGTERM. The end of the first process in its namespace ends all others, and unshare.
    if (this.#child.spawnfile === "unshare") {
      for (const pid of childrenOf(this.#child.pid ?? 0)) process.kill(pid, "SIGKILL");
    } else this.#child.kill("SIGTERM");
    await exited;
  }
}
