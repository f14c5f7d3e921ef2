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
/** The model of this repository. */
const ownModel = fileURLToPath(new URL("model", import.meta.url));

/** Number of processes. Each has a copy of the model, and synthesizes several streams at real time. */
const mostProcesses = 4;

/**
 * @throws Error that names the missing or changed file of the model; EngineMissing if the model cannot run
 * here.
 */
export async function openArcana(options: EngineOptions, folder = ownModel): Promise<Engine> {
  await readModel(folder); // The check runs before any process starts, because a damaged model must not be replaced by another generator.
  const processes = Math.min(options.processes, mostProcesses);
  return ProcessPool.open({ ...program, args: [folder] }, { ...options, processes });
}
