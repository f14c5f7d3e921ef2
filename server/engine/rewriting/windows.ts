import { rm } from "node:fs/promises";
import { InferenceSession, type Tensor } from "onnxruntime-node";
import { KokoroModel } from "../neural/kokoro.ts";
import { type KokoroInputs, SplitGraph } from "../neural/kokoro-graphs.ts";
import { meansOf, withGivenMeans, withMeanOutputs } from "../neural/onnx/given-means.ts";
import { sessionOptions } from "../neural/onnx/model-spec.ts";
import { differenceOf, type Measured, seamProblem, type WindowErrors, windowErrors } from "./comparison.ts";
import { lines } from "./lines.ts";
import { replaceFile } from "./replace-file.ts";
import type { RewriteJob, WindowsOutcome } from "./rewrite.ts";
import { probeInputs, splitAtGenerator } from "./split.ts";

type Job = Pick<RewriteJob, "spec" | "parts">;

/** The line with which the means of each voice are measured: a sentence with three phrases. */
const meansLine = 2;

/**
 * Divides a rewritten graph into two files, which synthesize in windows, and measures the means of each voice.
 * The function keeps the files only if whole lines are equal to those of the rewritten graph, and windows are
 * close to whole lines.
 * @param rewritten the output of the rewritten graph on this machine.
 */
export async function makeWindows(
  model: Buffer,
  rewritten: Measured,
  { spec, parts }: Job,
): Promise<WindowsOutcome> {
  try {
    return await tryWindows(model, rewritten, { spec, parts });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    for (const path of Object.values(parts)) await rm(path, { force: true });
    return { kind: "none", reason };
  }
}

async function tryWindows(model: Buffer, rewritten: Measured, { spec, parts }: Job): Promise<WindowsOutcome> {
  const split = splitAtGenerator(model);
  const channels = await channelsOf(split.generator);
  const total = channels.reduce((sum, count) => sum + count, 0);
  const front = await replaceFile(parts.front, split.front);
  const generator = await replaceFile(parts.generator, withGivenMeans(split.generator, channels));
  const files = {
    front: { path: parts.front, sha256: front },
    generator: { path: parts.generator, sha256: generator },
  };
  const graph = await SplitGraph.load(files, total, spec.runtime);
  try {
    const kokoro = await KokoroModel.load(spec, graph);
    const inputsOf = (line: number, speaker: number): KokoroInputs =>
      kokoro.inputsOf(kokoro.spell(lines[line] ?? [], speaker), { speaker, stretch: 1 });
    await requireEqualLines(graph, rewritten, inputsOf);
    const means: Float32Array[] = [];
    for (const speaker of spec.voices.keys())
      means.push((await graph.runWithMeans(inputsOf(meansLine, speaker))).means);
    const errors: WindowErrors[] = [];
    for (const line of lines.keys()) errors.push(await errorsOf(graph, inputsOf(line, 0), means[0]));
    const problem = seamProblem(errors);
    if (problem !== undefined) throw new Error(problem);
    return {
      kind: "windows",
      sha256: { front, generator, means: await replaceFile(parts.means, bytesOf(means)) },
      channels: total,
      seamDecibels: Math.min(...errors.map(({ seamDecibels }) => seamDecibels)),
      levelDecibels: Math.max(...errors.map(({ levelDecibels }) => Math.abs(levelDecibels))),
    };
  } finally {
    await graph.close();
  }
}

/** Returns the number of channels of each mean. The function runs the graph, because the file lacks the shapes. */
async function channelsOf(generator: Buffer): Promise<number[]> {
  const names = meansOf(generator);
  if (names.length === 0) throw new Error("the generator has no means over time");
  const options = sessionOptions({ providers: ["cpu"], threads: 1 });
  const session = await InferenceSession.create(withMeanOutputs(generator), options);
  try {
    const results = await session.run(probeInputs());
    return names.map((name) => channelsIn(name, results[name] as Tensor));
  } finally {
    await session.release();
  }
}

function channelsIn(name: string, { dims }: Tensor): number {
  const [batch, channels = 0, time] = dims;
  if (dims.length !== 3 || batch !== 1 || time !== 1)
    throw new Error(`the mean ${name} has the dimensions ${dims.join(", ")} instead of 1, channels, 1`);
  return channels;
}

type InputsOf = (line: number, speaker: number) => KokoroInputs;

async function requireEqualLines(graph: SplitGraph, rewritten: Measured, inputsOf: InputsOf): Promise<void> {
  const outputs: Measured["lines"][number][] = [];
  for (const [line, { samples }] of rewritten.lines.entries()) {
    const { audio } = await graph.run(inputsOf(line, 0));
    outputs.push({ audio, samples });
  }
  const difference = differenceOf(rewritten, { ...rewritten, lines: outputs });
  if (difference !== undefined) throw new Error(`without windows, ${difference}`);
}

/** Compares the windows of a line with the whole line. */
async function errorsOf(
  graph: SplitGraph,
  inputs: KokoroInputs,
  means: Float32Array = new Float32Array(),
): Promise<WindowErrors> {
  const own = (await graph.run(inputs)).audio;
  const whole = (await graph.runWithMeans(inputs, means)).audio;
  const { audio, length } = await graph.begin(inputs, means);
  const windows = new Float32Array(length);
  for await (const { at, audio: piece } of audio({ from: 0, to: length })) windows.set(piece, at);
  return windowErrors({ own, whole, windows });
}

function bytesOf(means: readonly Float32Array[]): Buffer {
  return Buffer.concat(
    means.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  );
}
