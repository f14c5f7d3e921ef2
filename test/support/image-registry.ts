/** Runs a registry of the project Distribution on this machine, without TLS. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { eventually } from "./eventually.ts";
import { leasePort } from "./port-lease.ts";

const build = join(import.meta.dirname, "../release/registry/build.sh");

export class ImageRegistry implements AsyncDisposable {
  /** Host and port, as in a reference of an image. */
  readonly address: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(address: string, child: ChildProcess, folder: string) {
    this.address = address;
    this.#child = child;
    this.#folder = folder;
  }

  /** Starts an empty registry on a free port of the loopback interface. The first call builds the program. */
  static async start(): Promise<ImageRegistry> {
    const program = (await promisify(execFile)(build, { timeout: 900_000 })).stdout.trim();
    const folder = mkdtempSync(join(tmpdir(), "svc-tts-registry-"));
    const address = `127.0.0.1:${await leasePort()}`;
    const configuration = join(folder, "config.yaml");
    writeFileSync(
      configuration,
      stringify({
        version: 0.1,
        log: { level: "error", accesslog: { disabled: true } },
        storage: { filesystem: { rootdirectory: join(folder, "storage") } },
        http: { addr: address },
      }),
    );
    const child = spawn(program, ["serve", configuration], {
      env: { ...process.env, OTEL_TRACES_EXPORTER: "none" },
      // Its log has an error for each artifact that a client looks for before it pushes the artifact.
      stdio: "ignore",
    });
    const registry = new ImageRegistry(address, child, folder);
    await eventually("the registry answers", async () => (await fetch(`http://${address}/v2/`)).ok);
    return registry;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill("SIGTERM");
      await once(this.#child, "exit");
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
