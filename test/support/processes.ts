import { readdirSync, readFileSync } from "node:fs";

/** True when a process has ended; one that only waits to be collected by its parent has ended too. */
export function processGone(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

/** Processes that this one started, and whose command line has a text. */
export function childrenWith(text: string, parent = process.pid): number[] {
  const threads = readdirSync(`/proc/${parent}/task`);
  const children = threads.flatMap((thread) =>
    readFileSync(`/proc/${parent}/task/${thread}/children`, "utf8").trim().split(" "),
  );
  return children.filter((pid) => pid !== "" && commandOf(pid).includes(text)).map(Number);
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return ""; // it has ended meanwhile
  }
}
