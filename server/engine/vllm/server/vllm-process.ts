import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { EngineLog } from "../../runtime/engine.ts";
import type { GeneratorModel } from "../model/model-folder.ts";
import { servedName } from "./server-address.ts";

export interface VllmCommand {
  /** The program `vllm`: a path, or a name on PATH. */
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The time between SIGTERM and SIGKILL. vLLM needs about 3 s to end. */
const stopLimitMs = 15_000;
/** The exit code of a shell if the program does not exist. */
const notFound = 127;
const maxLineChars = 4_000;
/** The file descriptor of a socket to the owner. The socket closes when the owner ends. */
const ownerSocket = 3;
/**
 * The shell command that runs vLLM under a watchdog. vLLM consists of several processes in one process group.
 * The watchdog kills the process group when the owner has ended for any reason, because the processes would
 * otherwise continue to occupy the GPU.
 */
const underWatch = `(cat; kill -KILL 0) <&${ownerSocket} >/dev/null 2>&1 & exec "$@" ${ownerSocket}<&-`;

/** One run of vLLM. The output of vLLM is written to the log. */
export class VllmProcess {
  readonly #child: ChildProcess;
  readonly #log: EngineLog;
  readonly #ended = Promise.withResolvers<string>();

  constructor({ program, args, environment }: VllmCommand, log: EngineLog) {
    this.#log = log;
    this.#child = spawn("sh", ["-c", underWatch, "sh", program, ...args], {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      env: environment,
      detached: true,
    });
    this.#child.once("error", (error) => this.#ended.resolve(`it could not be started: ${error.message}`));
    // If no file descriptor is free, Node returns no `stdio`, in contradiction to its type, and emits the
    // error later.
    const stdio: ChildProcess["stdio"] | undefined = this.#child.stdio;
    stdio?.[ownerSocket]?.on("error", () => undefined); // The watchdog may end before this process.
    this.#logLines(this.#child.stdout);
    this.#logLines(this.#child.stderr);
    this.#child.once("exit", (code, signal) => {
      this.kill(); // Ends the remaining processes of the group.
      this.#ended.resolve(
        code === notFound ? missing(program) : `it ended with ${signal ?? `status ${code}`}`,
      );
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Resolves with the exit status when vLLM has ended. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** Stops vLLM with SIGTERM, and with SIGKILL if it does not end. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    const timer = setTimeout(() => this.kill(), stopLimitMs);
    this.#child.kill("SIGTERM");
    await exited;
    clearTimeout(timer);
  }

  /** Kills all processes of vLLM immediately. */
  kill(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // All processes have ended.
    }
  }

  #logLines(stream: Readable | null | undefined): void {
    if (!stream) return;
    createInterface({ input: stream }).on("line", (line) => {
      const text = line.slice(0, maxLineChars).trim();
      if (text === "") return;
      // A line of vLLM's loggers has the form "INFO 11-22 01:00:00 [file.py:12] …".
      const level = /\b(ERROR|CRITICAL|WARNING)\b/u.test(text.slice(0, 120)) ? "warn" : "info";
      this.#log[level]({ from: "vllm", pid: this.#child.pid }, text);
    });
  }
}

function missing(program: string): string {
  return `the program ${program} was not found. Install vLLM, set GENERATOR_VLLM_PROGRAM to its path, or set GENERATOR_URL to a running vLLM server`;
}

/** Returns a free port of this machine. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string")
    throw new Error("the machine has no free port on 127.0.0.1");
  return address.port;
}

/**
 * The number of sequences in addition to the streams. The next phrase of a stream may start before the last
 * token of the current phrase is written, and health checks need one sequence.
 */
const spareSequences = 4;

/**
 * Returns the arguments of `vllm` for a model.
 * @param extra further arguments. They come last, so that they override the arguments of the model.
 */
export function vllmArguments(
  { folder, manifest }: GeneratorModel,
  streams: number,
  extra: readonly string[],
): string[] {
  const forTokens =
    manifest.kind === "tokens"
      ? [
          "--max-model-len",
          String(manifest.context),
          "--skip-tokenizer-init",
          // One event has the tokens of one frame. Fewer tokens would cause many small events, and more
          // tokens would delay the audio.
          "--stream-interval",
          String(manifest.codec.slots.length),
          "--max-num-seqs",
          String(streams + spareSequences),
          "--generation-config",
          "vllm",
        ]
      : [];
  return [
    "serve",
    folder,
    "--served-model-name",
    servedName,
    "--disable-uvicorn-access-log",
    ...forTokens,
    ...(manifest.vllm?.args ?? []),
    ...extra,
  ];
}

/** Disables vLLM's usage reports and downloads of files. */
export const vllmEnvironment: Readonly<Record<string, string>> = {
  VLLM_NO_USAGE_STATS: "1",
  DO_NOT_TRACK: "1",
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
};
