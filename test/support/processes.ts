/** Reads facts about processes from /proc (see proc(5)). */
import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks per second. The value is the same on every Linux that Node.js supports. */
const ticksPerSecond = 100;

/**
 * Returns the fields of /proc/PID/stat after the name of the program. The first of these fields is the state.
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
    return undefined; // The process has ended.
  }
}

/** Returns the program and arguments of a process. */
export function commandOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
}

/** Returns the user and system CPU time of a process in seconds, without its children. */
export function processorSeconds(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Returns the resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (!match) throw new Error(`/proc/${pid}/status has no VmRSS: process ${pid} may have ended`);
  return Number(match[1]) * 1024;
}

/** Returns whether a process has ended. A zombie process has ended too. */
export function processGone(pid: number): boolean {
  try {
    return statOf(pid)[0] === "Z";
  } catch {
    return true;
  }
}

/** Returns the child processes with this text in their command line. */
export function childrenWith(text: string, parent = process.pid): number[] {
  return childrenOf(parent).filter((pid) => `${wordsOf(pid).join(" ")} `.includes(text));
}

function wordsOf(pid: number): string[] {
  try {
    return commandOf(pid);
  } catch {
    return []; // The process has ended.
  }
}
