import { RestartBackoff } from "../../../lib/backoff.ts";
import { Failure } from "../../contract/errors.ts";
import type { EngineFrame, Sounds, Utterance } from "../../contract/speech.ts";
import { type Engine, EngineMissing, type EngineOptions, type OnBegun, type OnWritten } from "./engine.ts";
import { type EngineCommand, EngineDied, EngineProcess, EngineRefused } from "./engine-process.ts";
import { type QueuedUtterance, UtteranceQueue } from "./utterance-queue.ts";

const backoff = { firstMs: 50, mostMs: 5_000, provenAfterMs: 10_000 };
/**
 * The time after concurrent jobs in which the multi-threaded process gets no job, because concurrent jobs are
 * likely to follow.
 */
const quietAfterMs = 100;
/** The time without a process after which an engine counts as failed. */
const restartBudgetMs = 30_000;

export interface EngineProgram extends EngineCommand {
  readonly name: string;
  /** The sampling rate in Hz. */
  readonly rate: number;
  /**
   * The arguments of one additional process, which may use all cores. This process gets a job that starts
   * while no other job runs. The number of the other processes equals the number of concurrent jobs, so that
   * concurrent jobs do not need the additional process.
   */
  readonly argsAlone?: readonly string[];
  readonly tokensPerSecond?: number;
}

/** An utterance that a process has finished, as a measurement of the engine's speed. */
export interface FinishedUtterance {
  readonly audioSeconds: number;
  readonly workSeconds: number;
  /**
   * Whether the process has the arguments `argsAlone`. The speed of this process differs from the speed of
   * the other processes.
   */
  readonly isMultiThreaded: boolean;
  /** The lowest number of processes without `argsAlone` that were busy at any moment of the utterance. */
  readonly leastBusy: number;
}

type OnFinished = (utterance: FinishedUtterance) => void;

interface RunningUtterance {
  leastBusy: number;
}

interface Role {
  readonly isMultiThreaded: boolean;
}

const singleThreaded: Role = { isMultiThreaded: false };

interface Waiting extends QueuedUtterance {
  readonly assign: (process: EngineProcess) => void;
}

/**
 * Engine processes of one kind. Each process runs one utterance at a time. The pool replaces processes that
 * end.
 */
export class ProcessPool implements Engine {
  readonly name: string;
  readonly rate: number;
  readonly tokensPerSecond?: number;
  readonly capacity: number;
  readonly #program: EngineProgram;
  readonly #log: EngineOptions["log"];
  readonly #onFinished: OnFinished | undefined;
  readonly #processes = new Set<EngineProcess>();
  readonly #free = new Set<EngineProcess>();
  /** The time at which a job last ended while other jobs ran or waited. */
  #concurrentAtMs = Number.NEGATIVE_INFINITY;
  /** The processes that run a job; at most `capacity`. */
  readonly #busy = new Set<EngineProcess>();
  readonly #running = new Set<RunningUtterance>();
  /** The process with the arguments `argsAlone`. The value is undefined while no such process runs. */
  #multiThreadedProcess: EngineProcess | undefined;
  readonly #waiting: UtteranceQueue<Waiting>;
  readonly #restarts = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #backoff = new RestartBackoff(backoff);
  #replaced = 0;
  #withoutProcessSince: number | undefined;

  private constructor(program: EngineProgram, options: EngineOptions, onFinished?: OnFinished) {
    this.name = program.name;
    this.rate = program.rate;
    if (program.tokensPerSecond) this.tokensPerSecond = program.tokensPerSecond;
    this.capacity = Math.max(1, options.processes);
    this.#waiting = new UtteranceQueue(this.capacity);
    this.#program = program;
    this.#log = options.log;
    this.#onFinished = onFinished;
  }

  /**
   * Starts the processes of an engine.
   * @throws EngineMissing if the engine cannot run on this machine.
   */
  static async open(
    program: EngineProgram,
    options: EngineOptions,
    onFinished?: OnFinished,
  ): Promise<ProcessPool> {
    const pool = new ProcessPool(program, options, onFinished);
    try {
      // The first process starts alone, so that a missing file is reported once and the other processes find
      // the files in the file cache.
      await pool.#startOne({ isMultiThreaded: program.argsAlone !== undefined });
    } catch (cause) {
      if (cause instanceof EngineMissing) throw cause;
      throw new EngineMissing(`The ${program.name} engine did not start. ${message(cause)}`, { cause });
    }
    try {
      const more = program.argsAlone === undefined ? pool.capacity - 1 : pool.capacity;
      await Promise.all(Array.from({ length: more }, () => pool.#startAnother()));
    } catch (cause) {
      await pool.close();
      throw cause;
    }
    return pool;
  }

  get restarts(): number {
    return this.#replaced;
  }

  get variant(): string | undefined {
    return [...this.#processes].map(({ variant }) => variant).find((variant) => variant !== "");
  }

  healthy(): boolean {
    const since = this.#withoutProcessSince;
    return since === undefined || performance.now() - since < restartBudgetMs;
  }

  /** Returns the process IDs of the running processes. A test uses the IDs to kill a process. */
  pids(): number[] {
    return [...this.#processes].flatMap((process) => process.pid ?? []);
  }

  async *speak(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten?: OnWritten,
    onBegun?: OnBegun,
  ): AsyncGenerator<EngineFrame, void, void> {
    let isAudioSent = false;
    const mayRetry = this.#retries();
    for (;;) {
      try {
        for await (const frame of this.#speakOnce(utterance, signal, onWritten, onBegun)) {
          isAudioSent = true;
          yield frame;
        }
        return;
      } catch (cause) {
        if (isAudioSent || !mayRetry(cause)) throw this.#failure(cause);
      }
    }
  }

  /**
   * Reads the sounds of each token. Returns undefined if the signal aborts first.
   * @throws Failure `model_failed` like `speak`.
   */
  async read(utterance: Utterance, signal: AbortSignal): Promise<readonly Sounds[] | undefined> {
    const mayRetry = this.#retries();
    for (;;) {
      const process = await this.#take(signal);
      if (!process) return undefined;
      try {
        return await process.read(utterance);
      } catch (cause) {
        if (!mayRetry(cause)) throw this.#failure(cause);
      } finally {
        this.#release(process);
      }
    }
  }

  /**
   * Creates a function that decides whether another process may retry an utterance. If a process died during
   * the utterance, the utterance may be the cause, so it is retried once. The limit does not include
   * processes that died before they read the utterance, because all idle processes may die together when
   * memory runs out.
   */
  #retries(): (cause: unknown) => boolean {
    let deathsDuring = 0;
    let deathsBefore = 0;
    return (cause) => {
      if (!(cause instanceof EngineDied)) return false;
      return cause.hadBegun ? ++deathsDuring <= 1 : ++deathsBefore <= this.capacity + 1;
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#restarts);
    await Promise.all([...this.#processes].map((process) => process.close()));
  }

  async *#speakOnce(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten: OnWritten | undefined,
    onBegun: OnBegun | undefined,
  ): AsyncGenerator<EngineFrame, void, void> {
    const process = await this.#take(signal, utterance);
    if (!process) return;
    const begunAtMs = performance.now();
    const { frames, settled, seconds } = process.run(utterance, signal);
    const running: RunningUtterance = { leastBusy: this.#countBusy() };
    this.#running.add(running);
    const onFree = onBegun?.();
    // The process is released before the client has received all audio. Otherwise a slow client would block
    // the process for other streams.
    void settled.then(() => {
      const isFinished = !signal.aborted && !process.dead;
      const workMs = performance.now() - begunAtMs;
      if (isFinished) this.#waiting.spoken(workMs);
      this.#running.delete(running);
      if (isFinished)
        this.#onFinished?.({
          ...{ audioSeconds: seconds(), workSeconds: workMs / 1000, leastBusy: running.leastBusy },
          isMultiThreaded: process === this.#multiThreadedProcess,
        });
      this.#release(process);
      onFree?.();
      if (isFinished) onWritten?.(seconds());
    });
    yield* frames;
  }

  get #isFull(): boolean {
    return this.#busy.size >= this.capacity;
  }

  /** Counts the busy processes, without the multi-threaded process. */
  #countBusy(): number {
    const multiThreaded = this.#multiThreadedProcess;
    return this.#busy.size - (multiThreaded && this.#busy.has(multiThreaded) ? 1 : 0);
  }

  #failure(cause: unknown): unknown {
    if (cause instanceof EngineDied || cause instanceof EngineRefused) {
      return new Failure(
        "model_failed",
        `The speech engine ${this.name} failed during the synthesis. Send the request again.`,
        { cause },
      );
    }
    return cause;
  }

  /** Returns a free process, or undefined if the signal aborts first. */
  #take(
    signal: AbortSignal,
    { dueAtMs = performance.now(), isFirst = false }: Pick<Utterance, "dueAtMs" | "isFirst"> = {},
  ): Promise<EngineProcess | undefined> {
    const free = this.#takeFree();
    if (free) return Promise.resolve(free);
    return new Promise((resolve) => {
      const assign = (process: EngineProcess) => {
        signal.removeEventListener("abort", gone);
        resolve(process);
      };
      const gone = () => {
        this.#waiting.remove(waiting);
        resolve(undefined);
      };
      const waiting = { dueAtMs, isFirst, assign };
      if (signal.aborted) return resolve(undefined);
      signal.addEventListener("abort", gone, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /**
   * Selects the multi-threaded process if no other job runs, waits or has just ended. Otherwise the function
   * selects the process that has been free the longest.
   */
  #takeFree(): EngineProcess | undefined {
    if (this.#isFull) return undefined;
    const alive = [...this.#free].filter(({ dead }) => !dead);
    const multiThreaded =
      this.#busy.size === 0 ? alive.find((process) => process === this.#multiThreadedProcess) : undefined;
    const other = alive.find((process) => process !== this.#multiThreadedProcess);
    const isQuiet = this.#waiting.length === 0 && performance.now() - this.#concurrentAtMs > quietAfterMs;
    const selected = isQuiet ? (multiThreaded ?? other) : (other ?? multiThreaded);
    if (!selected) return undefined;
    this.#free.delete(selected);
    this.#busy.add(selected);
    return selected;
  }

  #release(process: EngineProcess): void {
    const wasBusy = this.#busy.delete(process);
    if (wasBusy && this.#busy.size + this.#waiting.length > 0) this.#concurrentAtMs = performance.now();
    if (!process.dead) this.#free.add(process); // The replacement of a dead process is already starting.
    this.#serveWaiting();
    const busy = this.#countBusy();
    for (const running of this.#running) running.leastBusy = Math.min(running.leastBusy, busy);
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0) {
      const free = this.#takeFree();
      if (!free) return;
      this.#waiting.take(performance.now())?.assign(free);
    }
  }

  async #startOne({ isMultiThreaded }: Role): Promise<void> {
    const { args = [], argsAlone = args } = this.#program;
    const process = await EngineProcess.start({ ...this.#program, args: isMultiThreaded ? argsAlone : args });
    if (this.#closing.signal.aborted) return process.close();
    if (isMultiThreaded) this.#multiThreadedProcess = process;
    const startedAt = performance.now();
    this.#processes.add(process);
    this.#withoutProcessSince = undefined;
    void process.exited.then((reason) => this.#replace(process, reason, performance.now() - startedAt));
    this.#release(process);
  }

  /**
   * Starts a process. A process that ends during its start is replaced.
   * @throws EngineMissing if the process reports that it cannot run on this machine.
   */
  async #startAnother(): Promise<void> {
    try {
      await this.#startOne(singleThreaded);
    } catch (error) {
      if (error instanceof EngineMissing) throw error;
      await this.#restart(singleThreaded);
    }
  }

  #replace(dead: EngineProcess, reason: string, livedMs: number): void {
    this.#processes.delete(dead);
    this.#free.delete(dead);
    if (this.#closing.signal.aborted) return;
    this.#replaced++;
    if (this.#processes.size === 0) this.#withoutProcessSince ??= performance.now();
    this.#backoff.ended(livedMs);
    this.#log.warn(
      { engine: this.name, reason, livedMs: Math.round(livedMs) },
      "an engine process ended; it is restarted",
    );
    const restart = this.#restart({ isMultiThreaded: dead === this.#multiThreadedProcess }).finally(() =>
      this.#restarts.delete(restart),
    );
    this.#restarts.add(restart);
  }

  #restart(role: Role): Promise<void> {
    return this.#backoff.restart(
      () => this.#startOne(role),
      this.#closing.signal,
      (error) =>
        this.#log.warn(
          { engine: this.name, reason: message(error) },
          "an engine process did not start; the start is retried",
        ),
    );
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
