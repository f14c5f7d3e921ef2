import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { InferenceSession, type Tensor } from "onnxruntime-node";
import { KokoroModel } from "../neural/kokoro.ts";
import { type KokoroInputs, SplitGraph } from "../neural/kokoro-graphs.ts";
import type { SpelledLine } from "../neural/neural-model.ts";
import { meansOf, withGivenMeans, withMeanOutputs } from "../neural/onnx/given-means.ts";
import { type KokoroSpec, sessionOptions } from "../neural/onnx/model-spec.ts";
import {
  encodeMeans,
  interpolate,
  type LineMeans,
  speechShareOf,
  type VoiceMeans,
} from "../neural/voice-means.ts";
import { differenceOf, type Measured, seamProblem, type WindowErrors, windowErrors } from "./comparison.ts";
import { lines } from "./lines.ts";
import { replaceFile } from "./replace-file.ts";
import type { RewriteJob, WindowsOutcome } from "./rewrite.ts";
import { probeInputs, splitAtGenerator } from "./split.ts";

type Job = Pick<RewriteJob, "spec" | "parts">;

/** The lines with which the means of each voice are measured: a word, and a sentence of ten words. */
const meansLines = { short: 0, long: 1 };
/** The lines whose windows are verified: a word, and a sentence that was not used for the means. */
const verifiedLines = [0, 2];
/** The limit for threads while the means are measured: more threads do not make short lines faster. */
const mostThreads = 4;

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
  const sha256 = {
    front: await replaceFile(parts.front, split.front),
    generator: await replaceFile(parts.generator, withGivenMeans(split.generator, channels)),
  };
  // The number of threads may change the rounding, so the graphs are compared with the same number.
  const errors = await withGraph(spec, parts, total, (graph, spell) => verify(graph, spell, rewritten));
  const threads = Math.min(mostThreads, availableParallelism());
  const fast = { ...spec, runtime: { ...spec.runtime, threads } };
  const means = await withGraph(fast, parts, total, async (graph, spell) => {
    const voices: VoiceMeans[] = [];
    for (const speaker of spec.voices.keys()) voices.push(await meansOfVoice(graph, speaker, spell));
    return voices;
  });
  return {
    kind: "windows",
    sha256: { ...sha256, means: await replaceFile(parts.means, encodeMeans(means)) },
    channels: total,
    seamDecibels: Math.min(...errors.map(({ seamDecibels }) => seamDecibels)),
    levelDecibels: Math.max(...errors.map(({ levelDecibels }) => Math.abs(levelDecibels))),
  };
}

/** Loads the split graph, and frees it after use. */
async function withGraph<Result>(
  spec: KokoroSpec,
  { front, generator }: RewriteJob["parts"],
  channels: number,
  use: (graph: SplitGraph, spell: Spell) => Promise<Result>,
): Promise<Result> {
  const graph = await SplitGraph.load({ front, generator }, channels, spec.runtime);
  try {
    const kokoro = await KokoroModel.load(spec, graph);
    return await use(graph, (line, speaker) => {
      const spelled = kokoro.spell(lines[line] ?? [], speaker);
      return { line: spelled, inputs: kokoro.inputsOf(spelled, { speaker, stretch: 1 }) };
    });
  } finally {
    await graph.close();
  }
}

/**
 * Verifies whole lines and windows of the split graph.
 * @throws Error if a difference is not accepted.
 */
async function verify(graph: SplitGraph, spell: Spell, rewritten: Measured): Promise<WindowErrors[]> {
  await requireEqualLines(graph, rewritten, spell);
  const voice = await meansOfVoice(graph, 0, spell);
  const errors: WindowErrors[] = [];
  for (const line of verifiedLines) {
    const own = rewritten.lines[line]?.audio ?? new Float32Array();
    errors.push(await errorsOf(graph, own, spell(line, 0), voice));
  }
  const problem = seamProblem(errors);
  if (problem !== undefined) throw new Error(problem);
  return errors;
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

interface Spelled {
  readonly line: SpelledLine;
  readonly inputs: KokoroInputs;
}

type Spell = (line: number, speaker: number) => Spelled;

async function requireEqualLines(graph: SplitGraph, rewritten: Measured, spell: Spell): Promise<void> {
  const outputs: Measured["lines"][number][] = [];
  for (const [line, { samples }] of rewritten.lines.entries()) {
    const { audio } = await graph.run(spell(line, 0).inputs);
    outputs.push({ audio, samples });
  }
  const difference = differenceOf(rewritten, { ...rewritten, lines: outputs });
  if (difference !== undefined) throw new Error(`without windows, ${difference}`);
}

async function meansOfVoice(graph: SplitGraph, speaker: number, spell: Spell): Promise<VoiceMeans> {
  const measureLine = async ({ line, inputs }: Spelled): Promise<LineMeans> => {
    const { means, durations } = await graph.runWithMeans(inputs);
    return { means, speechShare: speechShareOf(line, durations) };
  };
  return {
    short: await measureLine(spell(meansLines.short, speaker)),
    long: await measureLine(spell(meansLines.long, speaker)),
  };
}

/**
 * Compares the windows of a line with the whole line.
 * @param own the whole line with its own means.
 */
async function errorsOf(
  graph: SplitGraph,
  own: Float32Array,
  { line, inputs }: Spelled,
  voice: VoiceMeans,
): Promise<WindowErrors> {
  const meansOf = (durations: readonly number[]) => interpolate(voice, speechShareOf(line, durations));
  const { audio, durations, length } = await graph.begin(inputs, meansOf);
  const windows = new Float32Array(length);
  for await (const { at, audio: piece } of audio({ from: 0, to: length })) windows.set(piece, at);
  const whole = (await graph.runWithMeans(inputs, meansOf(durations))).audio;
  return windowErrors({ own, whole, windows });
}
