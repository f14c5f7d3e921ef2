/**
 * The process of an operator. As in a pod, the process has the files of a service account, the address of the
 * API server, and a Lease.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { leasePorts } from "../../../test/support/port-lease.ts";
import { processorSeconds, residentBytes } from "../../../test/support/processes.ts";
import type { Field, Plot } from "./field.ts";

/** The command that starts an operator. */
export interface Program {
  readonly name: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const accountPath = "/run/secrets/kubernetes.io/serviceaccount";
const stopWithinMs = 20_000;
const pollMs = 100;
/**
 * A process is at rest if it uses at most a tenth of a core for this time: `restSeconds` of CPU time in
 * `restMs`.
 */
const restMs = 200;
const restSeconds = 0.02;

export class Subject {
  readonly pid: number;
  readonly startedMs: number;
  readonly #child: ChildProcess;
  readonly #metricsPort: number;
  readonly #program: Program;
  readonly #log: string;

  private constructor(program: Program, child: ChildProcess, metricsPort: number, log: string) {
    this.#program = program;
    this.#log = log;
    this.#child = child;
    this.#metricsPort = metricsPort;
    this.startedMs = performance.now();
    this.pid = child.pid ?? 0;
  }

  static async start(field: Field, plot: Plot, program: Program): Promise<Subject> {
    const [metricsPort = 0, probePort = 0] = await leasePorts(2);
    const { hostname, port } = new URL(field.address.server);
    // The process has a separate mount namespace, in which /run contains only the service account. The kernel
    // ends the process together with the benchmark.
    const inPod = `mount -t tmpfs tmpfs /run && mkdir -p ${accountPath} && cp "$ACCOUNT"/* ${accountPath}/ && exec "$@"`;
    const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
    const child = spawn(
      "setpriv",
      [
        ...["--pdeathsig", "KILL", "--", "unshare", "--mount", ...asRoot],
        ...["sh", "-c", inPod, "sh", ...program.command],
      ],
      {
        env: {
          PATH: process.env.PATH,
          ACCOUNT: plot.accountFolder,
          KUBERNETES_SERVICE_HOST: hostname,
          KUBERNETES_SERVICE_PORT: port,
          TTS_WATCH_NAMESPACES: plot.namespace,
          POD_NAMESPACE: plot.namespace,
          POD_NAME: `${program.name}-${metricsPort}`,
          TTS_METRICS_PORT: String(metricsPort),
          TTS_PROBE_PORT: String(probePort),
          ...program.environment,
        },
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      },
    );
    const log = join(field.address.directory, `${program.name}.log`);
    const lines = createWriteStream(log, { flags: "a" });
    child.stdout.pipe(lines, { end: false });
    child.stderr.pipe(lines, { end: false });
    return new Subject(program, child, metricsPort, log);
  }

  /**
   * Waits until the operator has made at least `passes` reconciles and has no more work, by its own metrics.
   * Reading the metrics uses CPU time, so the metrics are read only when the process is at rest. Returns the
   * milliseconds from the start of the process to the rest.
   */
  async inSync(passes: number, withinMs = 300_000): Promise<number> {
    for (;;) {
      const restMs = await this.untilResting(withinMs);
      const figures = await this.#figures();
      if (figures !== undefined && figures.passes >= passes && figures.waiting === 0 && figures.active === 0)
        return restMs;
      if (performance.now() - this.startedMs > withinMs)
        throw new Error(
          `${this.#program.name} is not in sync after ${withinMs} ms: ${JSON.stringify(figures)}`,
        );
      await sleep(pollMs);
    }
  }

  /** Waits until the process is at rest. Returns the milliseconds from its start to the rest. */
  async untilResting(withinMs = 300_000): Promise<number> {
    for (;;) {
      this.#assertRuns();
      const beganMs = performance.now() - this.startedMs;
      const before = this.processorSeconds();
      await sleep(restMs);
      if (this.processorSeconds() - before <= restSeconds || beganMs > withinMs) return beganMs;
    }
  }

  /** Returns the user and system time of the process so far. */
  processorSeconds(): number {
    return processorSeconds(this.pid);
  }

  residentBytes(): number {
    return residentBytes(this.pid);
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    const left = AbortSignal.timeout(stopWithinMs);
    await Promise.race([exited, once(left, "abort")]);
    if (left.aborted) {
      this.#child.kill("SIGKILL");
      await exited;
    }
  }

  #assertRuns(): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) return;
    const last = readFileSync(this.#log, "utf8").trimEnd().split("\n").slice(-3).join("\n");
    throw new Error(`${this.#program.name} ended unexpectedly; the end of its log is:\n${last}`);
  }

  /**
   * Reads metrics of the operator by the names of controller-runtime. Returns undefined while the operator
   * does not respond.
   */
  async #figures(): Promise<{ passes: number; waiting: number; active: number } | undefined> {
    const text = await this.#metrics();
    if (text === undefined) return undefined;
    return {
      passes: sumOf(text, "controller_runtime_reconcile_total", /result="(success|requeue_after|requeue)"/),
      waiting: sumOf(text, "workqueue_depth"),
      active: sumOf(text, "controller_runtime_active_workers"),
    };
  }

  async #metrics(): Promise<string | undefined> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#metricsPort}/metrics`);
      return await response.text();
    } catch {
      return undefined; // The operator does not listen yet.
    }
  }
}

function sumOf(text: string, name: string, labels = /./): number {
  const lines = text.split("\n").filter((line) => line.startsWith(`${name}{`) && labels.test(line));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
