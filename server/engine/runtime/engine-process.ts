import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { childEnvironment, smallSemiSpace } from "../../../lib/child-processes.ts";
import type { Message } from "../../contract/framing.ts";
import type { EngineFrame, Sounds, TokenTimestamp, Utterance } from "../../contract/speech.ts";
import { EngineMissing } from "./engine.ts";
import {
  engineSocket,
  idMessage,
  jsonMessage,
  messageSplitter,
  messageTypes,
  readAudio,
} from "./protocol.ts";

/** The process ended, hung or violated the protocol. A retry by another process may succeed. */
export class EngineDied extends Error {
  /** Whether the process had read the job. The job may then be the cause of the failure. */
  readonly hadBegun: boolean;

  constructor(message: string, { hadBegun }: { readonly hadBegun: boolean }) {
    super(message);
    this.hadBegun = hadBegun;
    this.name = "EngineDied";
  }
}

/** The engine rejected this utterance. Another process would reject the utterance too. */
export class EngineRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "EngineRefused";
  }
}

const usualStartLimitMs = 30_000;
/**
 * The time without a message after which a process counts as hung. An engine sends its first audio within
 * tens of milliseconds.
 */
const usualSilenceLimitMs = 20_000;
const closeLimitMs = 2_000;
const stderrTailChars = 2_000;

/** The command of an engine process. */
export interface EngineCommand {
  readonly file: string;
  readonly args?: readonly string[];
  /**
   * Longer limits, for an engine that reads a large file at its start and synthesizes a whole phrase before
   * its first sample.
   */
  readonly startLimitMs?: number;
  readonly silenceLimitMs?: number;
}

interface Job {
  readonly id: number;
  readonly frames: EngineFrame[];
  times: TokenTimestamp[];
  rate: number;
  seconds: number;
  sounds: readonly Sounds[];
  begun: boolean;
  finished: boolean;
  error: Error | undefined;
  wake: () => void;
  readonly settled: PromiseWithResolvers<void>;
}

/** An utterance that the process synthesizes. */
export interface Running {
  /**
   * The audio of the utterance. At most one utterance that was not consumed is kept in memory. After an
   * abort, the iteration ends without further frames.
   */
  readonly frames: AsyncIterable<EngineFrame>;
  /**
   * Resolves when the process can run the next utterance, or has ended, also if the client has not received
   * all audio.
   */
  readonly settled: Promise<void>;
  /** Returns the duration of the audio so far. */
  seconds(): number;
}

/** One engine process. The process starts, becomes ready, runs one job at a time, and ends. */
export class EngineProcess {
  readonly #child: ChildProcess;
  /**
   * The socket to the process. The value is undefined if no file descriptor was free, and the process was
   * therefore not started.
   */
  readonly #socket: Socket | undefined;
  readonly #splitter = messageSplitter();
  readonly #silenceLimitMs: number;
  readonly #ready = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<string>();
  #job: Job | undefined;
  #lastId = 0;
  #dead = false;
  #silence: NodeJS.Timeout | undefined;
  #stderr = "";
  #variant = "";

  private constructor({ file, args = [], silenceLimitMs = usualSilenceLimitMs }: EngineCommand) {
    this.#silenceLimitMs = silenceLimitMs;
    this.#child = spawn(
      process.execPath,
      ["--max-old-space-size=256", smallSemiSpace, "--disable-warning=ExperimentalWarning", file, ...args],
      {
        stdio: ["ignore", "ignore", "pipe", "pipe"],
        env: childEnvironment(),
        // The process gets its own process group. Ctrl-C then reaches only the owner, which drains running
        // streams.
        detached: true,
      },
    );
    this.#child.on("error", (error) => this.#end(`could not be started: ${error.message}`));
    // If no file descriptor is free, Node returns no `stdio`, in contradiction to its type, and emits the
    // error later.
    const stdio: ChildProcess["stdio"] | undefined = this.#child.stdio;
    this.#socket = stdio?.[engineSocket] as Socket | undefined;
    this.#watch();
  }

  /**
   * Starts a process and waits until it is ready.
   * @throws EngineMissing if the process reports that it cannot run on this machine; EngineDied if it does
   * not start.
   */
  static async start(command: EngineCommand): Promise<EngineProcess> {
    const started = new EngineProcess(command);
    const limitMs = command.startLimitMs ?? usualStartLimitMs;
    const timer = setTimeout(() => started.#die(`did not start within ${limitMs / 1000} s`), limitMs);
    try {
      await started.#ready.promise;
      return started;
    } finally {
      clearTimeout(timer);
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The variant of the engine. The value is empty if the engine has only one variant. */
  get variant(): string {
    return this.#variant;
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Resolves with the reason when the process has ended. */
  get exited(): Promise<string> {
    return this.#exited.promise;
  }

  /**
   * Synthesizes one utterance.
   * @throws EngineDied if the process has ended.
   */
  run(utterance: Utterance, signal: AbortSignal): Running {
    const job = this.#begin(messageTypes.speak, utterance);
    const stop = () => this.#stop(job);
    signal.addEventListener("abort", stop);
    const settled = job.settled.promise.then(() => signal.removeEventListener("abort", stop));
    return { frames: this.#frames(job, signal), settled, seconds: () => job.seconds };
  }

  /**
   * Reads the sounds of each token of one utterance, without synthesis.
   * @throws EngineDied if the process has ended; EngineRefused if the engine cannot read the utterance.
   */
  async read(utterance: Utterance): Promise<readonly Sounds[]> {
    const job = this.#begin(messageTypes.read, utterance);
    await job.settled.promise;
    if (job.error) throw job.error;
    return job.sounds;
  }

  async close(): Promise<void> {
    this.#socket?.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), closeLimitMs);
    await this.#exited.promise;
    clearTimeout(timer);
  }

  async *#frames(job: Job, signal: AbortSignal): AsyncGenerator<EngineFrame, void, void> {
    try {
      while (!signal.aborted) {
        const frame = job.frames.shift();
        if (frame) yield frame;
        else if (job.error) throw job.error;
        else if (job.finished) return;
        else await new Promise<void>((resolve) => (job.wake = resolve));
      }
    } finally {
      this.#stop(job);
    }
  }

  #stop(job: Job): void {
    if (!job.finished) this.#send(idMessage(messageTypes.stop, job.id));
    job.frames.length = 0;
    job.wake();
  }

  #begin(type: number, utterance: Utterance): Job {
    if (this.#dead) throw new EngineDied("the engine process has ended", { hadBegun: false });
    this.#lastId = (this.#lastId + 1) >>> 0 || 1; // The ID 0 means "no job".
    const job: Job = {
      id: this.#lastId,
      frames: [],
      times: [],
      rate: 0,
      seconds: 0,
      sounds: [],
      begun: false,
      finished: false,
      error: undefined,
      wake: () => undefined,
      settled: Promise.withResolvers(),
    };
    this.#job = job;
    this.#send(jsonMessage(type, { id: job.id, utterance }));
    this.#restartSilenceTimer();
    return job;
  }

  #watch(): void {
    this.#socket?.on("data", (piece: Buffer) => this.#receive(piece));
    this.#socket?.on("error", (error) => this.#die(`could not use its socket: ${error.message}`));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-stderrTailChars);
    });
    // The event "close" follows after the last message was read. The event "exit" may come earlier.
    this.#child.on("close", (code, signal) => this.#end(`ended with ${signal ?? `status ${code}`}`));
  }

  #receive(piece: Buffer): void {
    try {
      for (const message of this.#splitter.push(piece)) this.#handle(message);
    } catch (error) {
      this.#die(`violated the protocol: ${String(error)}`);
    }
  }

  #handle({ type, payload }: Message): void {
    switch (type) {
      case messageTypes.ready:
        // After the start the output may contain text to synthesize, which must not be kept.
        this.#stderr = "";
        this.#child.stderr?.removeAllListeners("data").resume();
        this.#variant = payload.toString();
        this.#ready.resolve();
        return;
      case messageTypes.begun:
        if (this.#job?.id === payload.readUInt32BE(0)) this.#job.begun = true;
        return;
      case messageTypes.audio:
        this.#handleAudio(payload);
        return;
      case messageTypes.times: {
        const { id, times } = JSON.parse(payload.toString()) as { id: number; times: TokenTimestamp[] };
        if (this.#job?.id === id) this.#job.times.push(...times);
        return;
      }
      case messageTypes.sounds: {
        const { id, sounds } = JSON.parse(payload.toString()) as { id: number; sounds: readonly Sounds[] };
        if (this.#job?.id === id) this.#job.sounds = sounds;
        return;
      }
      case messageTypes.done:
        this.#finish(payload.readUInt32BE(0));
        return;
      case messageTypes.failed: {
        const { id, message } = JSON.parse(payload.toString()) as { id: number; message: string };
        if (id === 0) this.#ready.reject(new EngineMissing(message));
        else this.#finish(id, new EngineRefused(message));
        return;
      }
      default:
        throw new Error(`the message type ${type} is unknown`);
    }
  }

  #handleAudio(payload: Buffer): void {
    const { id, rate, samples } = readAudio(payload);
    const job = this.#job;
    if (job?.id !== id) return;
    job.frames.push({ samples, rate, times: job.times });
    job.times = [];
    job.rate = rate;
    job.seconds += samples.length / rate;
    this.#send(idMessage(messageTypes.ack, id));
    this.#restartSilenceTimer();
    job.wake();
  }

  #finish(id: number, error?: Error): void {
    const job = this.#job;
    if (job?.id !== id) return;
    clearTimeout(this.#silence);
    if (job.times.length > 0) {
      job.frames.push({ samples: new Int16Array(0), rate: job.rate, times: job.times });
    }
    job.error = error;
    job.finished = true;
    job.settled.resolve();
    job.wake();
  }

  #restartSilenceTimer(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(
      () => this.#die(`sent no message for ${this.#silenceLimitMs / 1000} s`),
      this.#silenceLimitMs,
    );
  }

  #send(bytes: Buffer): void {
    if (!this.#dead && this.#socket?.writable) this.#socket.write(bytes);
  }

  #die(reason: string): void {
    this.#child.kill("SIGKILL");
    this.#end(reason);
  }

  #end(reason: string): void {
    if (this.#dead) return;
    this.#dead = true;
    const detail = this.#stderr ? `${reason}: ${this.#stderr.trim()}` : reason;
    const job = this.#job;
    const died = new EngineDied(`The engine process ${detail}.`, { hadBegun: job?.begun ?? false });
    if (job && !job.finished) this.#finish(job.id, died);
    this.#ready.reject(died);
    this.#exited.resolve(detail);
  }
}
