/**
 * Runs each command in its own process group, so that the command and all its child processes can be killed
 * at a time limit, on Ctrl-C, and when the command itself ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const GRACE_MS = 15_000;
const FOLLOW_EVERY_MS = 250;
/** An environment variable of all processes of a run. It identifies processes that left their group. */
const MARKER = "SVC_TTS_TEST_RUN";

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The file that receives standard output and standard error. */
  readonly logFile: string;
  /** Receives the output in complete lines as it arrives. */
  readonly onOutput?: (lines: string) => void;
  /** The whole process group is ended after this time. */
  readonly endAfterMs: number;
}

export interface CommandEnd {
  /** The exit code, or 1 if a signal ended the command. */
  readonly exitCode: number;
  readonly tookMs: number;
  readonly timedOut: boolean;
}

interface Leftover {
  readonly pid: number;
  readonly command: string;
}

export class ProcessGroups {
  readonly #marker = randomUUID();
  readonly #running = new Set<ChildProcess>();
  #stopped = false;

  /** Runs a command to its end. It does not throw for an exit code. After `stop`, it starts no command. */
  async run(command: readonly string[], options: CommandOptions): Promise<CommandEnd> {
    if (this.#stopped) return { exitCode: 1, tookMs: 0, timedOut: false };
    const [program = "", ...args] = command;
    const started = performance.now();
    // The command writes to the file itself, so that the log is complete even if this process ends.
    const log = openSync(options.logFile, "w");
    const env = { ...process.env, ...options.env, [MARKER]: this.#marker };
    const child = spawn(program, args, { detached: true, stdio: ["ignore", log, log], env });
    closeSync(log);
    const stopFollowing = options.onOutput ? follow(options.logFile, options.onOutput) : undefined;
    this.#running.add(child);
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      void endGroup(child);
    }, options.endAfterMs);
    try {
      const [code] = (await once(child, "exit")) as [number | null];
      return { exitCode: code ?? 1, tookMs: performance.now() - started, timedOut };
    } finally {
      clearTimeout(timer);
      signalGroup(child, "SIGKILL");
      this.#running.delete(child);
      stopFollowing?.();
    }
  }

  /** Ends every running command with its group. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#running].map(endGroup));
  }

  /** Returns the running processes that the commands started, in any process group. */
  leftovers(): Leftover[] {
    const entry = `${MARKER}=${this.#marker}`;
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && readProcess(name, "environ").split("\0").includes(entry))
      .map((name) => ({
        pid: Number(name),
        command: readProcess(name, "cmdline").replaceAll("\0", " ").trim(),
      }));
  }

  /** Kills the processes that `leftovers` returns, and returns them. */
  killLeftovers(): Leftover[] {
    const found = this.leftovers();
    for (const { pid } of found) kill(pid, "SIGKILL");
    return found;
  }
}

/** On SIGINT, SIGTERM and SIGHUP, calls `stop`, and exits with the code that a shell expects. */
export function onInterrupt(stop: () => Promise<void>): void {
  let interrupted = false;
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => {
      if (interrupted) return;
      interrupted = true;
      console.error(`\n==> ${signal}: stopping the running commands`);
      void stop().finally(() => process.exit(code));
    });
  }
}

/** Sends SIGTERM to the process group, and SIGKILL if the command does not end in time. */
async function endGroup(child: ChildProcess): Promise<void> {
  const timer = new AbortController();
  const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
  signalGroup(child, "SIGTERM");
  await Promise.race([exited, delay(GRACE_MS, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
  signalGroup(child, "SIGKILL");
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined) kill(-child.pid, signal);
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH means that the process has already ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Reads a file of /proc. The text is empty if the process has ended or belongs to another user. */
function readProcess(pid: string, file: "environ" | "cmdline"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH", "EACCES"].includes((error as NodeJS.ErrnoException).code ?? "")) return "";
    throw error;
  }
}

/**
 * Passes the complete lines of a growing file to `onOutput`. The returned function passes the rest of the
 * file, and ends the reading.
 */
function follow(path: string, onOutput: (lines: string) => void): () => void {
  const file = openSync(path, "r");
  const buffer = Buffer.alloc(65_536);
  let pending = Buffer.alloc(0);
  const readOn = () => {
    for (let length = readSync(file, buffer); length > 0; length = readSync(file, buffer))
      pending = Buffer.concat([pending, buffer.subarray(0, length)]);
    const end = pending.lastIndexOf("\n") + 1;
    if (end > 0) onOutput(pending.toString("utf8", 0, end));
    pending = pending.subarray(end);
  };
  const timer = setInterval(readOn, FOLLOW_EVERY_MS);
  return () => {
    clearInterval(timer);
    readOn();
    if (pending.length > 0) onOutput(`${pending.toString()}\n`);
    closeSync(file);
  };
}
