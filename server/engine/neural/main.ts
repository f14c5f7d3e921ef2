/**
 * The engine process of one mounted model. Its first argument describes the model. `process-pool.ts` owns it.
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
  /** Variant of its graph, if there are several. */
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
  if (sum !== sha256) throw new Error(`its sha256 is ${sum}, not ${sha256}`);
  return file;
}

/** Only this process loads ONNX Runtime, because a fault in its native code ends the process. */
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
 * Selects the rewritten graph if the processor computes it exactly and its file is complete, else the
 * original one.
 */
async function graphOf({ model, sha256, rewritten }: KokoroSpec): Promise<{ file: Buffer; variant: string }> {
  if (!rewritten) return { file: await readChecked(model, sha256), variant: "graph as it came" };
  const graph = await exactGraph(rewritten);
  if (typeof graph !== "string") return { file: graph, variant: `rewritten graph, ${rewritten.weights}` };
  return { file: await readChecked(model, sha256), variant: `graph as it came: ${graph}` };
}

/** Returns the file of the rewritten graph, or the reason why it is not used. */
async function exactGraph({ model, sha256, weights }: RewrittenGraph): Promise<Buffer | string> {
  const { isExactForInt8 } = await import("./onnx/integer-kernels.ts");
  if (weights === "int8" && !(await isExactForInt8()))
    return "this processor does not multiply 8-bit integers exactly";
  try {
    return await readChecked(model, sha256);
  } catch (error) {
    return `the rewritten one cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * The first inference takes several times as long, and detects an unusable graph before the first request.
 */
async function warmUp(model: NeuralModel): Promise<void> {
  const line = model.spell([{ token: 0, sounds: ["ɹ", "ˈɛ", "d", "i"], after: "." }], 0);
  await model.speak(line, { speaker: 0, stretch: 1 });
}
