import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { RestartBackoff } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { CollectorLog } from "./otlp.ts";

/** Seconds between two readings. */
const intervalSeconds = 5;
/** A reading is valid for this time. It becomes invalid when its program ends or hangs. */
const freshMs = 3 * intervalSeconds * 1_000;
/** The end of a program that ran for at least this long is logged. */
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
 * Load of the GPUs that this process sees, read from one `nvidia-smi` that runs as long as this object. If
 * the program does not exist, it is not started again. A program that ends is restarted with growing delays.
 */
export class GpuLoad {
  readonly #log: CollectorLog;
  readonly #clock: Clock;
  /** By the GPU's index. */
  readonly #readings = new Map<string, Reading>();
  readonly #closing = new AbortController();

  constructor(log: CollectorLog, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    void this.#watch();
  }

  /** The mean over all GPUs, 0 to 100, or undefined if none reports its load. */
  percent(): number | undefined {
    const since = this.#clock.monotonicMs() - freshMs;
    const fresh = [...this.#readings.values()].filter(({ atMs }) => atMs > since);
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
        this.#log.info({}, "nvidia-smi is not installed, so the load of GPUs is not reported");
        return;
      }
      backoff.ended(this.#clock.monotonicMs() - startedAtMs);
      if (backoff.failures === 0) this.#log.warn({ reason: end }, "nvidia-smi ended; it is started again");
      await sleep(this.#clock, backoff.nextMs(), signal);
    }
  }

  /** Resolves with the reason of the end. */
  async #run(): Promise<string> {
    const { signal } = this.#closing;
    const child = spawn("nvidia-smi", command, { stdio: ["ignore", "pipe", "ignore"], signal });
    // Without file descriptors Node sets no `stdout`, contrary to its type, and reports the error later.
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

  /** `37, 0`, or `[N/A], 0` for a GPU that does not report its load, such as one that is divided by MIG. */
  #read(line: string): void {
    const [load = "", index = ""] = line.split(",").map((field) => field.trim());
    const atMs = this.#clock.monotonicMs();
    if (/^\d{1,3}$/.test(load)) this.#readings.set(index, { percent: Number(load), atMs });
    else this.#readings.delete(index);
  }
}
