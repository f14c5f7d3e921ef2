import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import type { Machine } from "./page.ts";

/** Returns the properties of the machine that affect every figure. */
export function describeMachine(): Machine {
  return {
    processor: cpus()[0]?.model.trim() ?? "unknown CPU",
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    node: process.versions.node,
    kernel: release().split("-")[0] ?? "",
    loadBefore: loadavg()[0] ?? 0,
  };
}
