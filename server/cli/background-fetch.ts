import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { createInterface } from "node:readline";
import type { Shell } from "../../lib/command-line.ts";

interface FetchedModel {
  readonly id: string;
  /** A command that synthesizes a text with a voice of the model. */
  readonly example: string;
  /** The promise resolves with true when all tiers are ready. The command of `example` works only then. */
  readonly ready: Promise<boolean>;
}

/**
 * Installs a model in a process with low priority while the tiers serve. A failure does not affect the tiers.
 * The promise resolves when the process has ended.
 */
export async function fetchInBackground(
  shell: Shell,
  { id, example, ready }: FetchedModel,
  signal: AbortSignal,
): Promise<void> {
  const [runtime, ...rest] = shell.program;
  const child = spawn(runtime, [...rest, "models", "get", id], {
    env: { ...shell.env },
    stdio: ["ignore", "pipe", "pipe", "ipc"], // The child ends with this process, because the channel closes.
  });
  child.once("spawn", () => lowerPriority(child.pid));
  for (const stream of [child.stdout, child.stderr]) {
    if (!stream) continue;
    createInterface({ input: stream }).on("line", (line) => {
      if (!signal.aborted) shell.print(`    natural voices: ${line.trim()}`);
    });
  }
  const stop = () => child.kill("SIGTERM");
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const [code] = (await once(child, "close")) as [number | null];
    const words = code === 0 ? installed((await ready) ? example : undefined) : failing(id);
    if (!signal.aborted) shell.print(`    natural voices: ${words}`);
  } catch (error) {
    shell.complain(`    natural voices: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function installed(example: string | undefined): string {
  if (example === undefined) return "installed";
  return `installed, and available in a few seconds. Try a voice in another terminal:\n\n${example}\n`;
}

function failing(model: string): string {
  return `not installed; the built-in voices stay in use. Try again: svc-tts models get ${model}`;
}

function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    return; // The system does not allow the change, or the process has ended.
  }
}
