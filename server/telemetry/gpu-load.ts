import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { RestartBackoff } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { CollectorLog } from "./otlp.ts";

/** The seconds between two readings. */
const intervalSeconds = 5;
/** A reading is valid for this time, so that no old value is reported while nvidia-smi hangs. */
const freshMs = 3 * intervalSeconds * 1_000;
/**
 * A process that ran for `provenAfterMs` counts as healthy: its end is logged, and the next delay is
 * `firstMs`.
 */
const backoffPolicy = { firstMs: 1_000, mostMs: 60_000, provenAfterMs: 30_000 };

const command = [
  "--query-gpu=utilization.gpu,index",
  "--format=csv,noheader,nounits",
  "-l",
  `${intervalSeconds}`,
];

interface Reading {
  readonly percent: number;
  readonly atMs: number;
}

/**
 * Reads the load of the visible GPUs from one `nvidia-smi` process until `close`. When the process ends, this
 * class restarts the process with growing delays. There is no restart if nvidia-smi is not installed.
 */
export class GpuLoad {
  readonly #log: CollectorLog;
  readonly #clock: Clock;
  /** The latest readings by the index of the GPU. */
  readonly #readings = new Map<string, Reading>();
  readonly #closing = new AbortController();

  constructor(log: CollectorLog, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    void this.#watch();
  }

  /** Returns the mean load of all GPUs, 0 to 100. Returns undefined if no GPU reports its load. */
  percent(): number | undefined {
    const oldestMs = this.#clock.monotonicMs() - freshMs;
    const fresh = [...this.#readings.values()].filter(({ atMs }) => atMs > oldestMs);
    if (fresh.length === 0) return undefined;
    return fresh.reduce((sum, { percent }) => sum + percent, 0) / fresh.length;
  }

  close(): void {
    this.#closing.abort();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing;
    const backoff = new RestartBackoff(backoffPolicy);
    while (!signal.aborted) {
      const startedAtMs = this.#clock.monotonicMs();
      const end = await this.#run();
      this.#readings.clear();
      if (signal.aborted) return;
      if (end === "missing") {
        this.#log.info({}, "nvidia-smi is not installed; the metric of the GPU load is absent");
        return;
      }
      backoff.ended(this.#clock.monotonicMs() - startedAtMs);
      if (backoff.failures === 0)
        this.#log.warn({ reason: end }, "nvidia-smi ended unexpectedly; it is being restarted");
      await sleep(this.#clock, backoff.nextMs(), signal);
    }
  }

  /** Runs nvidia-smi once. Resolves with the reason for its end. */
  async #run(): Promise<string> {
    const { signal } = this.#closing;
    const child = spawn("nvidia-smi", command, { stdio: ["ignore", "pipe", "ignore"], signal });
    // If the process has no free file descriptors, `stdout` is undefined, contrary to its type. Node reports
    // the error later.
    const stdout: Readable | undefined = child.stdout;
    if (stdout) createInterface(stdout).on("line", (line) => this.#read(line));
    try {
      const [code, killedBy] = await once(child, "close");
      return killedBy ? `signal ${killedBy}` : `code ${code}`;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ENOENT" ? "missing" : message;
    }
  }

  /** Reads a line such as `37, 0`, or `[N/A], 0` for a GPU without a reported load, for example with MIG. */
  #read(line: string): void {
    const [load = "", index = ""] = line.split(",").map((field) => field.trim());
    const atMs = this.#clock.monotonicMs();
    if (/^\d{1,3}$/.test(load)) this.#readings.set(index, { percent: Number(load), atMs });
    else this.#readings.delete(index);
  }
}
