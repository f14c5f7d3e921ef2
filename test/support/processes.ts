import { readFileSync } from "node:fs";

/** True when a process has ended; one that only waits to be collected by its parent has ended too. */
export function processGone(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}
