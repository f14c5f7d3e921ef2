import { fileURLToPath } from "node:url";
import type { Engine, EngineOptions } from "../runtime/engine.ts";
import { ProcessPool } from "../runtime/process-pool.ts";

const program = { name: "flite", rate: 16_000, file: fileURLToPath(new URL("main.ts", import.meta.url)) };

/**
 * Starts the Flite processes.
 * @throws EngineMissing if libflite is not installed.
 */
export function openFlite(options: EngineOptions): Promise<Engine> {
  return ProcessPool.open(program, options);
}
