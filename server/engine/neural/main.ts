/** The engine process of one mounted model, which its first argument describes. Its owner is `process-pool.ts`. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { reportStartFailure, serveJobs } from "../serve-jobs.ts";
import { withinReach } from "../within-reach.ts";
import type { ModelSpec } from "./model-spec.ts";
import type { NeuralModel } from "./neural-model.ts";
import { neuralReach, neuralSynthesizer } from "./synthesize.ts";

const spec = JSON.parse(process.argv[2] ?? "null") as ModelSpec;
const model = await tryLoad();
if (model) await serveJobs(withinReach(neuralSynthesizer(model), neuralReach));

async function tryLoad(): Promise<NeuralModel | undefined> {
  try {
    const loaded = await load(await readChecked());
    await warmUp(loaded);
    return loaded;
  } catch (error) {
    reportStartFailure(`${spec.model}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
    return undefined;
  }
}

async function readChecked(): Promise<Buffer> {
  const file = await readFile(spec.model);
  const sum = createHash("sha256").update(file).digest("hex");
  if (sum !== spec.sha256) throw new Error(`its sha256 is ${sum}, not ${spec.sha256}`);
  return file;
}

/** ONNX Runtime is loaded here and in no other process: its native code may end the one that it is in. */
async function load(file: Buffer): Promise<NeuralModel> {
  if (spec.kind === "piper") return (await import("./piper.ts")).PiperModel.load(spec, file);
  return (await import("./kokoro.ts")).KokoroModel.load(spec, file);
}

/** The first inference takes several times as long, and a graph that cannot speak is found before anybody asks. */
async function warmUp(loaded: NeuralModel): Promise<void> {
  const line = loaded.spell([{ token: 0, sounds: ["ɹ", "ˈɛ", "d", "i"], after: "." }]);
  await loaded.speak(line, { speaker: 0, stretch: 1 });
}
