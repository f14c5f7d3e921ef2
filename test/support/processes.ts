/** Facts about processes from the kernel (proc(5)). */
import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks per second, on every Linux that Node runs on. */
const ticksPerSecond = 100;

/**
 * The fields of /proc/PID/stat after the name, which may contain any character. The first one is the state.
 */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

export function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter((pid) => parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(statOf(pid)[1]);
  } catch {
    return undefined; // the process ended meanwhile
  }
}

/** The arguments of the process. */
export function commandOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
}

/** The processor time so far, user and system, of the process without its children. */
export function processorSeconds(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** The resident memory in bytes. */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (!match) throw new Error(`the kernel reports no resident memory of process ${pid}`);
  return Number(match[1]) * 1024;
}

/** Returns true if a process has ended, including a zombie process. */
export function processGone(pid: number): boolean {
  try {
    return statOf(pid)[0] === "Z";
  } catch {
    return true;
  }
}

/** The child processes of this process whose command line contains a text. */
export function childrenWith(text: string, parent = process.pid): number[] {
  return childrenOf(parent).filter((pid) => `${wordsOf(pid).join(" ")} `.includes(text));
}

function wordsOf(pid: number): string[] {
  try {
    return commandOf(pid);
  } catch {
    return []; // the process ended meanwhile
  }
}
