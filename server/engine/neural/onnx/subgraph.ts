import { fieldHead, fieldsOf, graphFields, modelFields, type ProtobufField, readNode } from "./onnx-graph.ts";
import { nodeField, valueField } from "./onnx-writer.ts";

/** A value inside a graph, and its name as an input or output of the new graph. */
interface RenamedValue {
  readonly value: string;
  readonly name: string;
}

/** The part of a graph between given values. */
interface SubgraphBounds {
  /** The values that become inputs. All of them are float32 with three dimensions of any size. */
  readonly inputs: readonly RenamedValue[];
  readonly outputs: readonly RenamedValue[];
}

const nameFields = { initializer: 8, input: 1 } as const;
const valueInfo = 13;
const inputDimensions = 3;
/** Operators whose attributes contain graphs. The nodes of these graphs use values of the outer graph. */
const nestedOperators: ReadonlySet<string> = new Set(["If", "Loop", "Scan"]);

/**
 * Extracts the part of a model that computes the outputs from the given inputs. Inputs of the whole graph
 * remain inputs if the part uses them.
 * @throws Error if the graph has nested graphs, or no node computes an output.
 */
export function subgraph(model: Buffer, { inputs, outputs }: SubgraphBounds): Buffer {
  const parts = fieldsOf(model);
  const graph = parts
    .filter(({ number }) => number === modelFields.graph)
    .flatMap(({ bytes }) => fieldsOf(bytes));
  const needed = neededFields(graph, { inputs, outputs });
  const kept = graph.filter((field) => isKept(field, needed)).map(({ raw }) => raw);
  const own = [
    ...inputs.map(({ name, value }) => identity(name, value)),
    ...kept,
    ...outputs.map(({ name, value }) => identity(value, name)),
    ...inputs.map(({ name }) => valueField(graphFields.input, name, inputDimensions)),
    ...outputs.map(({ name }) => valueField(graphFields.output, name)),
  ];
  const length = own.reduce((sum, { length: bytes }) => sum + bytes, 0);
  const others = parts.filter(({ number }) => number !== modelFields.graph).map(({ raw }) => raw);
  return Buffer.concat([...others, fieldHead(modelFields.graph, length), ...own]);
}

interface Needed {
  readonly nodes: ReadonlySet<ProtobufField>;
  readonly values: ReadonlySet<string>;
}

/** Finds the nodes and the values on the paths from the inputs to the outputs. */
function neededFields(graph: readonly ProtobufField[], { inputs, outputs }: SubgraphBounds): Needed {
  const makers = makersOf(graph);
  const values = new Set(inputs.map(({ value }) => value));
  const nodes = new Set<ProtobufField>();
  const waiting = outputs.map(({ value }) => value);
  const missing = waiting.find((value) => !makers.has(value));
  if (missing !== undefined) throw new Error(`no node of the graph computes ${missing}`);
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (values.has(value)) continue;
    values.add(value);
    const maker = makers.get(value);
    if (!maker) continue;
    nodes.add(maker.field);
    waiting.push(...maker.inputs);
  }
  return { nodes, values };
}

interface Maker {
  readonly field: ProtobufField;
  readonly inputs: readonly string[];
}

/** Returns the node that computes each value. */
function makersOf(graph: readonly ProtobufField[]): Map<string, Maker> {
  const makers = new Map<string, Maker>();
  for (const field of graph) {
    if (field.number !== graphFields.node) continue;
    const { operator, inputs, outputs } = readNode(field.bytes);
    if (nestedOperators.has(operator)) throw new Error(`the graph has an operator ${operator}`);
    for (const output of outputs) makers.set(output, { field, inputs });
  }
  return makers;
}

function isKept(field: ProtobufField, { nodes, values }: Needed): boolean {
  switch (field.number) {
    case graphFields.node:
      return nodes.has(field);
    case graphFields.initializer:
      return values.has(nameOf(field, nameFields.initializer));
    case graphFields.input:
      return values.has(nameOf(field, nameFields.input));
    case graphFields.output:
    case valueInfo:
      return false;
    default:
      return true;
  }
}

function nameOf({ bytes }: ProtobufField, nameField: number): string {
  return (
    fieldsOf(bytes)
      .find(({ number }) => number === nameField)
      ?.bytes.toString() ?? ""
  );
}

function identity(from: string, to: string): Buffer {
  return nodeField({ name: `svc_tts/${from}/${to}`, operator: "Identity", inputs: [from], outputs: [to] });
}
