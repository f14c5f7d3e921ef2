import { fileURLToPath } from "node:url";
import type { Engine, EngineOptions } from "../runtime/engine.ts";
import { ProcessPool } from "../runtime/process-pool.ts";
import { readModel } from "./model-files.ts";

const program = {
  name: "arcana-mini",
  rate: 16_000,
  tokensPerSecond: 80,
  file: fileURLToPath(new URL("main.ts", import.meta.url)),
};
/** The folder of the model that is part of this repository. */
const includedModel = fileURLToPath(new URL("model", import.meta.url));

/**
 * The limit for the number of processes. Each process has a copy of the model and synthesizes several streams
 * in real time.
 */
const mostProcesses = 4;

/**
 * Starts the engine processes.
 * @throws Error that names a missing or changed file of the model; EngineMissing if the model cannot run on
 * this machine.
 */
export async function openArcana(options: EngineOptions, folder = includedModel): Promise<Engine> {
  // The files are checked before a process starts, because a damaged model must cause an error. If the error
  // came from the process, another generator would replace the model.
  await readModel(folder);
  const processes = Math.min(options.processes, mostProcesses);
  return ProcessPool.open({ ...program, args: [folder] }, { ...options, processes });
}
