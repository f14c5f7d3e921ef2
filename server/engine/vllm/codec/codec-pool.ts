import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { RestartBackoff } from "../../../../lib/backoff.ts";
import { childEnvironment, smallSemiSpace } from "../../../../lib/child-processes.ts";
import type { EngineLog } from "../../runtime/engine.ts";
import { type QueuedUtterance, UtteranceQueue } from "../../runtime/utterance-queue.ts";
import type { CodecAnswer, CodecJob, CodecSpec, WindowJob } from "./codec-job.ts";

const file = fileURLToPath(new URL("main.ts", import.meta.url));
const startLimitMs = 120_000;
/**
 * The time without a response after which a process counts as hung. A window takes at most about one second.
 */
const answerLimitMs = 20_000;
const closeLimitMs = 2_000;
const backoff = { firstMs: 100, mostMs: 10_000, provenAfterMs: 10_000 };
/**
 * The number of attempts to decode a window. Decoding has no state, so another process can retry a window.
 */
const mostTries = 3;

export interface CodecProcessPoolOptions extends CodecSpec {
  readonly processes: number;
  /**
   * The number of windows that one process decodes together. A number above 1 is useful only if the decoder
   * needs less time for several windows together, as on a GPU.
   */
  readonly batch: number;
  readonly log: EngineLog;
}

interface Waiting extends QueuedUtterance {
  readonly window: WindowJob;
  readonly resolve: (audio: Int16Array) => void;
  readonly reject: (error: Error) => void;
  tries: number;
}

/**
 * Processes that decode codes into audio. Each process has its own decoder. The pool replaces processes that
 * end.
 */
export class CodecProcessPool {
  readonly #options: CodecProcessPoolOptions;
  readonly #processes = new Set<CodecProcess>();
  readonly #waiting: UtteranceQueue<Waiting>;
  readonly #starting = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #cost = Number.POSITIVE_INFINITY;
  #restarts = 0;
  readonly #backoff = new RestartBackoff(backoff);

  private constructor(options: CodecProcessPoolOptions) {
    this.#options = options;
    this.#waiting = new UtteranceQueue(options.processes);
  }

  /**
   * Starts the processes.
   * @throws Error with the reason if the decoder cannot be loaded.
   */
  static async open(options: CodecProcessPoolOptions): Promise<CodecProcessPool> {
    const pool = new CodecProcessPool(options);
    try {
      await Promise.all(Array.from({ length: options.processes }, () => pool.#start()));
    } catch (error) {
      await pool.close();
      throw error;
    }
    return pool;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** The seconds of audio that all processes together decode in one second. */
  get speed(): number {
    return this.#options.processes / this.#cost;
  }

  /** Returns the process IDs of the running processes. A test uses the IDs to kill a process. */
  pids(): number[] {
    return [...this.#processes].flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Decodes one window.
   * @returns the samples that the window requests.
   * @throws Error if the decoder failed.
   */
  decode(window: WindowJob, { dueAtMs, isFirst }: QueuedUtterance): Promise<Int16Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.add({ window, dueAtMs, isFirst, resolve, reject, tries: 0 });
      this.#assign();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const { reject } of this.#waiting.clear()) reject(new Error("the codec is closed"));
    await Promise.all(this.#starting);
    await Promise.all([...this.#processes].map((process) => process.close()));
  }

  #assign(): void {
    for (const process of this.#processes) {
      if (process.busy) continue;
      const batch = this.#takeBatch();
      if (batch.length === 0) return;
      void this.#run(process, batch);
    }
  }

  /** Removes and returns the next window, and further windows of the same length. */
  #takeBatch(): Waiting[] {
    const next = this.#waiting.take(performance.now());
    if (!next) return [];
    const isAsLong = ({ window }: Waiting) => window.frames.length === next.window.frames.length;
    return [next, ...this.#waiting.takeMore(this.#options.batch - 1, isAsLong)];
  }

  async #run(process: CodecProcess, batch: readonly Waiting[]): Promise<void> {
    const begunAtMs = performance.now();
    try {
      const audio = await process.decode(batch.map(({ window }) => window));
      this.#waiting.spoken((performance.now() - begunAtMs) / batch.length);
      for (const [i, { resolve }] of batch.entries()) resolve(audio[i] ?? new Int16Array(0));
    } catch (error) {
      for (const waiting of batch) this.#retry(waiting, process.dead, error as Error);
    }
    this.#assign();
  }

  #retry(waiting: Waiting, died: boolean, error: Error): void {
    waiting.tries++;
    if (!died || waiting.tries >= mostTries || this.#closing.signal.aborted) waiting.reject(error);
    else this.#waiting.add(waiting);
  }

  async #start(): Promise<void> {
    const process = await CodecProcess.start(this.#options);
    this.#cost = Math.min(this.#cost, process.cost);
    if (this.#closing.signal.aborted) return process.close();
    const startedAt = performance.now();
    this.#processes.add(process);
    void process.ended.then((reason) => this.#replace(process, reason, performance.now() - startedAt));
    this.#assign();
  }

  #replace(dead: CodecProcess, reason: string, livedMs: number): void {
    this.#processes.delete(dead);
    if (this.#closing.signal.aborted) return;
    this.#restarts++;
    this.#backoff.ended(livedMs);
    this.#options.log.warn({ engine: "codec", reason }, "a codec process ended; it is restarted");
    const starting = this.#restart().finally(() => this.#starting.delete(starting));
    this.#starting.add(starting);
  }

  #restart(): Promise<void> {
    return this.#backoff.restart(
      () => this.#start(),
      this.#closing.signal,
      (error) =>
        this.#options.log.warn(
          { engine: "codec", reason: (error as Error).message },
          "a codec process did not start; the start is retried",
        ),
    );
  }
}

class CodecProcess {
  readonly #child: ChildProcess;
  readonly #ready = Promise.withResolvers<number>();
  readonly #ended = Promise.withResolvers<string>();
  #job: (PromiseWithResolvers<readonly Int16Array[]> & { readonly id: number }) | undefined;
  #lastId = 0;
  #dead = false;
  #cost = 0;

  private constructor(spec: CodecSpec) {
    const { file: onnx, codec, providers } = spec;
    this.#child = fork(file, [JSON.stringify({ file: onnx, codec, providers } satisfies CodecSpec)], {
      execArgv: ["--max-old-space-size=256", smallSemiSpace],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      env: childEnvironment(),
      // The process gets its own process group. Ctrl-C then reaches only the owner, which drains running
      // streams.
      detached: true,
    });
    this.#child.on("message", (answer: CodecAnswer) => this.#receive(answer));
    this.#child.on("error", (error) => this.#end(error.message));
    this.#child.on("exit", (code, signal) => this.#end(`it ended with ${signal ?? `status ${code}`}`));
  }

  static async start(spec: CodecSpec): Promise<CodecProcess> {
    const started = new CodecProcess(spec);
    const timer = setTimeout(
      () => started.#kill(`it did not start within ${startLimitMs / 1000} s`),
      startLimitMs,
    );
    try {
      started.#cost = await started.#ready.promise;
      return started;
    } finally {
      clearTimeout(timer);
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get cost(): number {
    return this.#cost;
  }

  get busy(): boolean {
    return this.#job !== undefined || this.#dead;
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Resolves with the reason when the process has ended. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  async decode(windows: CodecJob["windows"]): Promise<readonly Int16Array[]> {
    const job = { id: ++this.#lastId, ...Promise.withResolvers<readonly Int16Array[]>() };
    this.#job = job;
    const timer = setTimeout(
      () => this.#kill(`it sent no response for ${answerLimitMs / 1000} s`),
      answerLimitMs,
    );
    try {
      this.#child.send({ id: job.id, windows } satisfies CodecJob, (error) => {
        if (error) this.#kill(error.message);
      });
      return await job.promise;
    } finally {
      clearTimeout(timer);
      this.#job = undefined;
    }
  }

  async close(): Promise<void> {
    if (this.#dead) return;
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), closeLimitMs);
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
    clearTimeout(timer);
  }

  #receive(answer: CodecAnswer): void {
    if (answer.kind === "ready") this.#ready.resolve(answer.cost);
    else if (answer.kind === "refused") this.#kill(answer.message);
    else if (answer.id !== this.#job?.id) return;
    else if (answer.kind === "decoded") this.#job.resolve(answer.audio);
    else this.#job.reject(new Error(`the codec could not decode a window: ${answer.message}`));
  }

  #kill(reason: string): void {
    this.#child.kill("SIGKILL");
    this.#end(reason);
  }

  #end(reason: string): void {
    if (this.#dead) return;
    this.#dead = true;
    const error = new Error(`The codec process failed: ${reason}`);
    this.#ready.reject(error);
    this.#job?.reject(error);
    this.#ended.resolve(reason);
  }
}
