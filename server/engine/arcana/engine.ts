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

/** Each holds a copy of the model, and speaks several streams at their pace. */
const mostProcesses = 4;

/**
 * @throws Error that names the file of the model that is missing or is another one; EngineMissing when the model cannot run here.
 */
export async function openArcana(options: EngineOptions, folder = ownModel): Promise<Engine> {
  await readModel(folder); // before any process tries: a broken model is no reason to speak with another
  const processes = Math.min(options.processes, mostProcesses);
  return ProcessPool.open({ ...program, args: [folder] }, { ...options, processes });
}
