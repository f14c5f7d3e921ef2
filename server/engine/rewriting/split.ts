import { Tensor } from "onnxruntime-node";
import { findDurations, splitNames } from "../neural/kokoro-graphs.ts";
import { type GraphNode, type GraphOutline, readOutline } from "../neural/onnx/onnx-graph.ts";
import { subgraph } from "../neural/onnx/subgraph.ts";

/** The two parts of Kokoro's graph. */
interface SplitModel {
  readonly front: Buffer;
  readonly generator: Buffer;
}

/** The stride of the generator's first operator that changes the time axis. */
const firstStride = 10;

/**
 * Divides Kokoro's graph before the generator, which turns features into audio. The front contains everything
 * that depends on the whole line.
 * @throws Error if the graph has another structure.
 */
export function splitAtGenerator(model: Buffer): SplitModel {
  const outline = readOutline(model);
  const audio = outline.outputs.find((name) => name === "waveform" || name === "audio");
  if (audio === undefined) throw new Error("the graph has no output of audio");
  const inner = [
    { value: featuresOf(outline), name: splitNames.features },
    { value: sourceOf(outline), name: splitNames.source },
  ];
  const durations = { value: findDurations(model).name, name: splitNames.durations };
  const output = { value: audio, name: splitNames.audio };
  return {
    front: subgraph(model, { inputs: [], outputs: [...inner, durations] }),
    generator: subgraph(model, { inputs: inner, outputs: [output] }),
  };
}

/** Finds the value that the generator's first transposed convolution reads, before its activation. */
function featuresOf(outline: GraphOutline): string {
  const first = only(outline, "transposed convolution with stride 10", ({ operator, integers }) => {
    return operator === "ConvTranspose" && integers.get("strides")?.[0] === firstStride;
  });
  const [activated = ""] = first.inputs;
  const activation = only(outline, "activation before the generator", ({ outputs }) =>
    outputs.includes(activated),
  );
  return activation.inputs[0] ?? "";
}

/** Finds the level and the phase of the voice's source: the first concatenation after the Fourier transform. */
function sourceOf(outline: GraphOutline): string {
  const transform = only(outline, "Fourier transform", ({ operator }) => operator === "STFT");
  const reached = new Set(transform.outputs);
  for (const { operator, inputs, outputs } of outline.nodes) {
    if (!inputs.some((name) => reached.has(name))) continue;
    if (operator === "Concat") return outputs[0] ?? "";
    for (const output of outputs) reached.add(output);
  }
  throw new Error("the graph has no concatenation after the Fourier transform");
}

function only({ nodes }: GraphOutline, what: string, isWanted: (node: GraphNode) => boolean): GraphNode {
  const found = nodes.filter(isWanted);
  const [node] = found;
  if (!node || found.length > 1) throw new Error(`the graph must have one ${what}; it has ${found.length}`);
  return node;
}

const probe = { frames: 4, featureChannels: 512, sourceChannels: 22, sourcePerFrame: 60, style: 256 };

/** Returns small inputs of the generator, with which its shapes can be measured. */
export function probeInputs(): Record<string, Tensor> {
  const { frames, featureChannels, sourceChannels, sourcePerFrame, style } = probe;
  const tensor = (dims: readonly number[]) => {
    const size = dims.reduce((product, dimension) => product * dimension, 1);
    return new Tensor("float32", new Float32Array(size).fill(0.1), dims);
  };
  return {
    [splitNames.features]: tensor([1, featureChannels, frames]),
    [splitNames.source]: tensor([1, sourceChannels, frames * sourcePerFrame + 1]),
    style: tensor([1, style]),
  };
}
