/**
 * The engine process of one mounted model. `process-pool.ts` starts this process, with the description of the
 * model as first argument.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { reportStartFailure, serveJobs } from "../runtime/serve-jobs.ts";
import { withinSpeedRange } from "../runtime/speed-range.ts";
import type { NeuralModel } from "./neural-model.ts";
import type { KokoroSpec, NeuralModelSpec, RewrittenGraph } from "./onnx/model-spec.ts";
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

async function readChecked(path: string, sha256: string): Promise<Buffer> {
  const file = await readFile(path);
  const sum = createHash("sha256").update(file).digest("hex");
  if (sum !== sha256) throw new Error(`the sha256 of the file is ${sum}; the manifest has ${sha256}`);
  return file;
}

/** Loads the model. Only this process loads ONNX Runtime, because a fault in native code ends the process. */
async function load(): Promise<Loaded> {
  if (spec.kind === "piper") {
    const { PiperModel } = await import("./piper.ts");
    return { model: await PiperModel.load(spec, await readChecked(spec.model, spec.sha256)) };
  }
  const { KokoroModel } = await import("./kokoro.ts");
  const { file, variant } = await graphOf(spec);
  return { model: await KokoroModel.load(spec, file), variant };
}

/**
 * Selects the rewritten graph if the CPU computes the graph exactly and its file is complete. Otherwise the
 * function selects the original graph.
 */
async function graphOf({ model, sha256, rewritten }: KokoroSpec): Promise<{ file: Buffer; variant: string }> {
  if (!rewritten) return { file: await readChecked(model, sha256), variant: "original graph" };
  const graph = await exactGraph(rewritten);
  if (typeof graph !== "string") return { file: graph, variant: `rewritten graph, ${rewritten.weights}` };
  return { file: await readChecked(model, sha256), variant: `original graph: ${graph}` };
}

/** Returns the file of the rewritten graph, or the reason why the engine does not use the graph. */
async function exactGraph({ model, sha256, weights }: RewrittenGraph): Promise<Buffer | string> {
  const { isExactForInt8 } = await import("./onnx/integer-kernels.ts");
  if (weights === "int8" && !(await isExactForInt8()))
    return "this CPU does not multiply 8-bit integers exactly";
  try {
    return await readChecked(model, sha256);
  } catch (error) {
    return `the rewritten graph cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Runs the first inference, which takes several times as long as later inferences. This run also detects an
 * unusable graph before the first request.
 */
async function warmUp(model: NeuralModel): Promise<void> {
  const line = model.spell([{ token: 0, sounds: ["ɹ", "ˈɛ", "d", "i"], after: "." }], 0);
  await model.speak(line, { speaker: 0, stretch: 1 });
}
