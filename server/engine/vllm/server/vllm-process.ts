import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { EngineLog } from "../../runtime/engine.ts";
import type { GeneratorModel } from "../model/model-folder.ts";
import { servedName } from "./server-address.ts";

export interface VllmCommand {
  /** The program `vllm`, as a path or a name on PATH. */
  readonly program: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** vLLM needs about 3 s after a SIGTERM. */
const stopLimitMs = 15_000;
/** Exit code of a shell for a missing program. */
const notFound = 127;
const maxLineChars = 4_000;
/** A descriptor whose other end the owner has. */
const ownerSocket = 3;
/**
 * vLLM is several processes. They run in a process group with a watchdog, which ends all of them when the
 * owner has ended for any reason. Otherwise they would continue to occupy the GPU.
 */
const underWatch = `(cat; kill -KILL 0) <&${ownerSocket} >/dev/null 2>&1 & exec "$@" ${ownerSocket}<&-`;

/** One run of vLLM. Its output becomes log lines. */
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
    // Without file descriptors Node returns no `stdio`, whatever its type states, and emits the error a
    // moment later.
    const stdio: ChildProcess["stdio"] | undefined = this.#child.stdio;
    stdio?.[ownerSocket]?.on("error", () => undefined); // It may end before this process does.
    this.#pass(this.#child.stdout);
    this.#pass(this.#child.stderr);
    this.#child.once("exit", (code, signal) => {
      this.kill(); // Ends the processes that it left behind.
      this.#ended.resolve(
        code === notFound ? missing(program) : `it ended with ${signal ?? `status ${code}`}`,
      );
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Resolves with its exit status. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** Stops it with SIGTERM, and with SIGKILL if it does not end. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    const timer = setTimeout(() => this.kill(), stopLimitMs);
    this.#child.kill("SIGTERM");
    await exited;
    clearTimeout(timer);
  }

  /** Ends all of its processes immediately. */
  kill(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // No process is left.
    }
  }

  #pass(stream: Readable | null | undefined): void {
    if (!stream) return;
    createInterface({ input: stream }).on("line", (line) => {
      const text = line.slice(0, maxLineChars).trim();
      if (text === "") return;
      // The format of vLLM's loggers: INFO 11-22 01:00:00 [file.py:12] …
      const level = /\b(ERROR|CRITICAL|WARNING)\b/u.test(text.slice(0, 120)) ? "warn" : "info";
      this.#log[level]({ from: "vllm", pid: this.#child.pid }, text);
    });
  }
}

function missing(program: string): string {
  return `there is no program ${program}: install vLLM, name it in GENERATOR_VLLM_PROGRAM, or name one that runs elsewhere in GENERATOR_URL`;
}

/** Returns a free port of this machine. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}

/**
 * Sequences in addition to the streams: a stream's next phrase may start before the last token of this one is
 * written, and proofs need one.
 */
const spareSequences = 4;

/**
 * Arguments of `vllm` for a model.
 * @param extra appended last, so that they override the others.
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
          // One frame per event: fewer tokens would be many small events, and more would delay the audio.
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

/** Disables vLLM's defaults that are not wanted here: usage reports, and downloads of files. */
export const vllmEnvironment: Readonly<Record<string, string>> = {
  VLLM_NO_USAGE_STATS: "1",
  DO_NOT_TRACK: "1",
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
};
