/**
 * The process that rewrites the graph of one Kokoro model and compares the outputs of the two graphs.
 * `rewrite.ts` starts this process. Only this process loads ONNX Runtime, because a fault in native code ends
 * the process.
 */
import { readFile } from "node:fs/promises";
import { KokoroModel } from "../neural/kokoro.ts";
import { type KokoroGraph, WholeGraph } from "../neural/kokoro-graphs.ts";
import { convolutionsAsProducts } from "../neural/onnx/integer-convolutions.ts";
import type { WeightType } from "../neural/onnx/model-spec.ts";
import { differenceOf, type Measured } from "./comparison.ts";
import { lines } from "./lines.ts";
import { replaceFile } from "./replace-file.ts";
import type { RewriteJob, RewriteOutcome } from "./rewrite.ts";
import { makeWindows } from "./windows.ts";

const { spec, target, parts } = JSON.parse(process.argv[2] ?? "null") as RewriteJob;
const outcome = await rewrite();
process.stdout.write(JSON.stringify(outcome));

async function rewrite(): Promise<RewriteOutcome> {
  const file = await readFile(spec.model);
  const original = await measureWhole(file);
  const reasons: string[] = [];
  for (const weights of ["int8", "uint8"] as const) {
    const { model, convolutions } = convolutionsAsProducts(file, weights);
    if (convolutions === 0)
      return { kind: "none", reason: "the graph has no integer convolutions to rewrite" };
    const rewritten = await measureWhole(model);
    const difference = differenceOf(original, rewritten) ?? slowness(original, rewritten);
    if (difference === undefined) return write(model, weights, [original, rewritten]);
    reasons.push(`with ${weights} weights, ${difference}`);
  }
  return { kind: "none", reason: reasons.join("; ") };
}

function slowness(original: Measured, rewritten: Measured): string | undefined {
  return rewritten.realTimeFactor < original.realTimeFactor
    ? undefined
    : "the rewritten graph is not faster on this machine";
}

/** Measures a graph in one file. Loading frees the memory of a file, so the function loads a copy. */
async function measureWhole(file: Buffer): Promise<Measured> {
  const graph = await WholeGraph.load(Buffer.from(file), spec.runtime);
  try {
    return await measure(graph);
  } finally {
    await graph.close();
  }
}

async function measure(graph: KokoroGraph): Promise<Measured> {
  const model = await KokoroModel.load(spec, graph);
  const settings = { speaker: 0, stretch: 1 };
  const symbols = lines.map((line) => model.spell(line, 0));
  // The first run is slower and is not measured.
  for (const line of symbols) await model.speak(line, settings);
  const startedAt = performance.now();
  const outputs: Measured["lines"][number][] = [];
  for (const line of symbols) outputs.push(await model.speak(line, settings));
  const seconds = (performance.now() - startedAt) / 1000;
  const samples = outputs.reduce((sum, { audio }) => sum + audio.length, 0);
  return { lines: outputs, realTimeFactor: (seconds * spec.rate) / samples };
}

async function write(
  model: Buffer,
  weights: WeightType,
  [original, rewritten]: readonly [Measured, Measured],
): Promise<RewriteOutcome> {
  return {
    kind: "rewritten",
    weights,
    sha256: await replaceFile(target, model),
    realTimeFactors: { original: original.realTimeFactor, rewritten: rewritten.realTimeFactor },
    windows: await makeWindows(model, rewritten, { spec, parts }),
  };
}
