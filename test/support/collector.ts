import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { V1Container } from "../../operator/facts/kubernetes-object.ts";
import { leasePorts } from "./port-lease.ts";

const run = promisify(execFile);
const build = join(import.meta.dirname, "../collector/build.sh");

let program: Promise<string> | undefined;

/** Returns the path of the collector. The first call builds it, which takes three minutes. */
export function collectorProgram(): Promise<string> {
  program ??= run(build, { timeout: 900_000 }).then(({ stdout }) => stdout.trim());
  return program;
}

/** Ports on this machine that replace the fixed ports of the pod. */
interface CollectorPorts {
  readonly grpc: number;
  readonly http: number;
  readonly health: number;
  readonly model: number;
  readonly vllm: number;
}

/**
 * Runs the container of a collector like Kubernetes, but with other ports, and with its files in a temporary
 * folder.
 */
export class CollectorPod implements AsyncDisposable {
  readonly folder: string;
  readonly ports: CollectorPorts;
  readonly #program: string;
  readonly #container: V1Container;
  #child: ChildProcess | undefined;
  #log = "";

  private constructor(program: string, folder: string, ports: CollectorPorts, container: V1Container) {
    this.#program = program;
    this.folder = folder;
    this.ports = ports;
    this.#container = container;
  }

  /** @param secrets the content of Secrets, by name and key */
  static async prepare(
    container: V1Container,
    secrets: Record<string, Record<string, string>>,
  ): Promise<CollectorPod> {
    const [grpc = 0, http = 0, health = 0, model = 0, vllm = 0] = await leasePorts(5);
    const folder = await mkdtemp(join(tmpdir(), "svc-tts-collector-"));
    const pod = new CollectorPod(
      await collectorProgram(),
      folder,
      { grpc, http, health, model, vllm },
      container,
    );
    for (const [name, entries] of Object.entries(secrets)) await pod.mount(name, entries);
    return pod;
  }

  /**
   * Writes files like the kubelet: each file is a symbolic link into a folder that is replaced atomically.
   */
  async mount(name: string, entries: Record<string, string>): Promise<void> {
    const into = join(this.folder, name);
    const data = `..${Date.now()}`;
    await mkdir(join(into, data), { recursive: true });
    for (const [key, value] of Object.entries(entries)) {
      await writeFile(join(into, data, key), value);
      if (!existsSync(join(into, key))) await symlink(join("..data", key), join(into, key));
    }
    await symlink(data, join(into, "..data_tmp"));
    await rename(join(into, "..data_tmp"), join(into, "..data"));
  }

  /** @param secretValues the values of the variables that come from Secrets */
  environment(secretValues: Record<string, string> = {}): Record<string, string> {
    const pairs = (this.#container.env ?? []).flatMap(({ name, value }): [string, string][] =>
      value === undefined ? [] : [[name, this.#moved(value.replaceAll("$$", "$"))]],
    );
    return { ...Object.fromEntries(pairs), POD_NAME: "demo-arcana-0", POD_NAMESPACE: "ns", ...secretValues };
  }

  async validate(secretValues: Record<string, string> = {}): Promise<void> {
    const env = this.environment(secretValues);
    await run(this.#program, ["validate", ...(this.#container.args ?? [])], { env });
  }

  async start(secretValues: Record<string, string> = {}): Promise<void> {
    const env = this.environment(secretValues);
    const child = spawn(this.#program, this.#container.args ?? [], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    this.#child = child;
    const deadline = Date.now() + 30_000;
    while (!(await this.healthy())) {
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`the collector did not start: ${this.#log}`);
      await delay(50);
    }
  }

  log(): string {
    return this.#log;
  }

  async healthy(): Promise<boolean> {
    return fetch(`http://127.0.0.1:${this.ports.health}/`).then(
      (response) => response.ok,
      () => false,
    );
  }

  /** Stops the collector with SIGTERM, like Kubernetes. Resolves with the exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null;
    child.kill("SIGTERM");
    await once(child, "exit");
    return child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  #moved(text: string): string {
    const { grpc, http, health, model, vllm } = this.ports;
    return text
      .replaceAll("127.0.0.1:4317", `127.0.0.1:${grpc}`)
      .replaceAll("127.0.0.1:4318", `127.0.0.1:${http}`)
      .replaceAll(":13133", `:${health}`)
      .replaceAll("127.0.0.1:8080", `127.0.0.1:${model}`)
      .replaceAll("127.0.0.1:8001", `127.0.0.1:${vllm}`)
      .replaceAll("/var/run/svc-tts/telemetry", this.folder);
  }
}
