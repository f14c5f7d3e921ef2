import { fieldHead, fieldsOf, graphFields, modelFields, type ProtobufField, readNode } from "./onnx-graph.ts";
import { constantField, integersConstant, nodeField, valueField } from "./onnx-writer.ts";

/**
 * Adds inputs to a graph that replace the means over time. A graph that normalizes over time depends on the
 * whole line. With given means, the graph computes each part of a line as it computes the whole line.
 */

/** The names that `withGivenMeans` adds. */
export const meanNames = {
  /** Input: the given means of all channels, with the dimensions [1, channels, 1]. */
  given: "means",
  /** Input: the share of the given means, from 0 to 1, with the dimensions [1, 1, 1]. */
  share: "means_share",
  /** Output: the means of this run, with the dimensions [1, channels, 1]. */
  own: "own_means",
} as const;

const dimensions = 3;
const channelAxis = 1;
/** The number of inputs of a mean: the value and the axes. */
const axesInputs = 2;

/** Returns the names of the means of a graph. */
export function meansOf(model: Buffer): string[] {
  return meanNodes(graphOf(model)).map(({ output }) => output);
}

/** Adds all means to the outputs of a graph. */
export function withMeanOutputs(model: Buffer): Buffer {
  const graph = graphOf(model);
  const outputs = meanNodes(graph).map(({ output }) => valueField(graphFields.output, output));
  return withGraph(model, [...graph.map(({ raw }) => raw), ...outputs]);
}

/**
 * Adds the inputs and the output of `meanNames` to a graph.
 * @param channels the number of channels of each mean, in the order of `meansOf`.
 */
export function withGivenMeans(model: Buffer, channels: readonly number[]): Buffer {
  const graph = graphOf(model);
  const replacements = new Map<ProtobufField, Buffer[]>();
  const own: string[] = [];
  let from = 0;
  for (const [i, { field, output, inputs }] of meanNodes(graph).entries()) {
    const to = from + (channels[i] ?? 0);
    replacements.set(field, mixedMean({ output, inputs, from, to }));
    own.push(ownName(output));
    from = to;
  }
  const concat = {
    name: meanNames.own,
    operator: "Concat",
    inputs: own,
    outputs: [meanNames.own],
    integers: { axis: channelAxis },
  };
  return withGraph(model, [
    ...graph.flatMap((field) => replacements.get(field) ?? [field.raw]),
    nodeField(concat),
    valueField(graphFields.input, meanNames.given, dimensions),
    valueField(graphFields.input, meanNames.share, dimensions),
    valueField(graphFields.output, meanNames.own),
  ]);
}

interface Mean {
  readonly output: string;
  readonly inputs: readonly string[];
}

function ownName(output: string): string {
  return `svc_tts/${output}/own`;
}

/** Returns the fields that compute `own + share · (given - own)`. */
function mixedMean({ output, inputs, from, to }: Mean & { readonly from: number; readonly to: number }) {
  const own = ownName(output);
  const bounds = [from, to, channelAxis].map((value, i) => integersConstant(`${own}/bound${i}`, [value]));
  const node = (operator: string, nodeInputs: readonly string[], result: string, integers = {}) =>
    nodeField({ name: result, operator, inputs: nodeInputs, outputs: [result], integers });
  return [
    ...bounds.map(constantField),
    node("ReduceMean", inputs, own, { keepdims: 1 }),
    node("Slice", [meanNames.given, ...bounds.map(({ name }) => name)], `${own}/given`),
    node("Sub", [`${own}/given`, own], `${own}/difference`),
    node("Mul", [`${own}/difference`, meanNames.share], `${own}/change`),
    node("Add", [own, `${own}/change`], output),
  ];
}

function meanNodes(graph: readonly ProtobufField[]): (Mean & { readonly field: ProtobufField })[] {
  return graph.flatMap((field) => {
    if (field.number !== graphFields.node) return [];
    const { operator, inputs, outputs } = readNode(field.bytes);
    const [output] = outputs;
    // In operator sets before 18, the axes are an attribute, which the new node would not have.
    const hasAxes = inputs.length === axesInputs;
    return operator === "ReduceMean" && hasAxes && output !== undefined ? [{ field, output, inputs }] : [];
  });
}

function graphOf(model: Buffer): ProtobufField[] {
  return fieldsOf(model)
    .filter(({ number }) => number === modelFields.graph)
    .flatMap(({ bytes }) => fieldsOf(bytes));
}

/** Returns the model with other fields of its graph. */
function withGraph(model: Buffer, fields: readonly Buffer[]): Buffer {
  const length = fields.reduce((sum, { length: own }) => sum + own, 0);
  const others = fieldsOf(model).filter(({ number }) => number !== modelFields.graph);
  return Buffer.concat([...others.map(({ raw }) => raw), fieldHead(modelFields.graph, length), ...fields]);
}
