import { fileURLToPath } from "node:url";
import type { EngineOptions } from "../runtime/engine.ts";
import { ProcessPool } from "../runtime/process-pool.ts";

const program = { name: "espeak", rate: 22_050, file: fileURLToPath(new URL("main.ts", import.meta.url)) };

/**
 * Starts the eSpeak NG processes.
 * @throws EngineMissing if the npm package of eSpeak NG is not installed.
 */
export function openEspeak(options: EngineOptions): Promise<ProcessPool> {
  return ProcessPool.open(program, options);
}
