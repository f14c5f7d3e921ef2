/**
 * The engine process of one mounted model. `process-pool.ts` starts this process, with the description of the
 * model as first argument.
 */
import { reportStartFailure, serveJobs } from "../runtime/serve-jobs.ts";
import { withinSpeedRange } from "../runtime/speed-range.ts";
import type { NeuralModel } from "./neural-model.ts";
import { readChecked } from "./onnx/checked-file.ts";
import type { NeuralModelSpec } from "./onnx/model-spec.ts";
import { neuralSynthesizer } from "./synthesize.ts";

const spec = JSON.parse(process.argv[2] ?? "null") as NeuralModelSpec;
const loaded = await tryLoad();
if (loaded) {
  const { model, variant } = loaded;
  await serveJobs(withinSpeedRange(neuralSynthesizer(model), model.reach), undefined, variant);
}

interface Loaded {
  readonly model: NeuralModel;
  /** The variant of the graph. The value is undefined if the kind of model has only one variant. */
  readonly variant?: string;
}

async function tryLoad(): Promise<Loaded | undefined> {
  try {
    const found = await load();
    await warmUp(found.model);
    return found;
  } catch (error) {
    reportStartFailure(`${spec.model}: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
    return undefined;
  }
}

/** Loads the model. Only this process loads ONNX Runtime, because a fault in native code ends the process. */
async function load(): Promise<Loaded> {
  if (spec.kind === "piper") {
    const { PiperModel } = await import("./piper.ts");
    return {
      model: await PiperModel.load(spec, await readChecked({ path: spec.model, sha256: spec.sha256 })),
    };
  }
  const { loadKokoro } = await import("./kokoro-variants.ts");
  return loadKokoro(spec);
}

/**
 * Runs the first inference, which takes several times as long as later inferences. This run also detects an
 * unusable graph before the first request.
 */
async function warmUp(model: NeuralModel): Promise<void> {
  const line = model.spell([{ token: 0, sounds: ["ɹ", "ˈɛ", "d", "i"], after: "." }], 0);
  await model.speak(line, { speaker: 0, stretch: 1 });
}
