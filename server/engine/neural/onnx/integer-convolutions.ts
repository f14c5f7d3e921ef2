import protobuf from "protobufjs/minimal.js";
import type { WeightType } from "./model-spec.ts";
import {
  fieldHead,
  fieldsOf,
  type GraphNode,
  graphFields,
  integers,
  modelFields,
  type ProtobufField,
  readNode,
  whileReading,
} from "./onnx-graph.ts";
import {
  constantField,
  elementTypes,
  integersConstant,
  type NewNode,
  type NewTensor,
  nodeField,
} from "./onnx-writer.ts";

/**
 * Rewrites each integer convolution of a graph as one integer matrix product. ONNX Runtime's `ConvInteger` is
 * slow on CPUs and takes two thirds of Kokoro's time. The matrix product adds the same integer products, so
 * the sums are identical if the CPU's kernels are exact (`integer-kernels.ts`).
 */

const { Reader } = protobuf;

export interface Rewritten {
  readonly model: Buffer;
  /** The number of rewritten convolutions. */
  readonly convolutions: number;
}

/** The lowest number of channels of a convolution to rewrite. Narrower convolutions do not become faster. */
const leastChannels = 64;
/** The lowest version of the default operators whose `Pad` accepts bytes. */
const leastOpset = 13;
const openEnd = 2 ** 31 - 1;
const prefix = "svc_tts";

/**
 * Rewrites the convolutions of a model.
 * @throws Error if the bytes are not an ONNX model.
 */
export function convolutionsAsProducts(model: Buffer, weights: WeightType): Rewritten {
  const parts = fieldsOf(model);
  if (opsetOf(parts) < leastOpset) return { model, convolutions: 0 };
  const graph = parts
    .filter(({ number }) => number === modelFields.graph)
    .flatMap(({ bytes }) => fieldsOf(bytes));
  const rewriting = new Rewriting(graph, weights);
  const rewritten = rewriting.fields();
  if (rewriting.convolutions === 0) return { model, convolutions: 0 };
  const length = rewritten.reduce((sum, { length: own }) => sum + own, 0);
  const others = parts.filter(({ number }) => number !== modelFields.graph).map(({ raw }) => raw);
  return {
    model: Buffer.concat([...others, fieldHead(modelFields.graph, length), ...rewritten]),
    convolutions: rewriting.convolutions,
  };
}

interface Tensor {
  readonly shape: readonly number[];
  readonly type: number;
  readonly data: Buffer;
}

/** A convolution that can be rewritten. */
interface Convolution {
  readonly node: GraphNode;
  readonly input: string;
  readonly inputZero: string;
  readonly weights: Tensor;
  readonly weightsName: string;
  readonly weightsZero: number;
  readonly dilation: number;
  readonly pads: readonly [number, number];
}

class Rewriting {
  readonly #graph: readonly ProtobufField[];
  readonly #weights: WeightType;
  readonly #tensors: ReadonlyMap<string, ProtobufField>;
  readonly #constants = new Map<string, NewTensor>();
  convolutions = 0;

  constructor(graph: readonly ProtobufField[], weights: WeightType) {
    this.#graph = graph;
    this.#weights = weights;
    this.#tensors = new Map(
      graph
        .filter(({ number }) => number === graphFields.initializer)
        .map((field) => [tensorName(field.bytes), field]),
    );
  }

  /** Returns the fields of the rewritten graph. */
  fields(): Buffer[] {
    const used = new Set<string>();
    const kept: ProtobufField[] = [];
    const replaced = new Map<ProtobufField, readonly NewNode[]>();
    for (const field of this.#graph) {
      const node = field.number === graphFields.node ? readNode(field.bytes) : undefined;
      const convolution = node && this.#convolutionOf(node);
      if (convolution) replaced.set(field, this.#productOf(convolution));
      else for (const name of node?.inputs ?? []) used.add(name);
      kept.push(field);
    }
    this.convolutions = replaced.size;
    const unused = this.#unusedWeights(replaced.keys(), used);
    return [
      ...kept
        .filter((field) => !unused.has(field))
        .flatMap((field) => replaced.get(field)?.map(nodeField) ?? [field.raw]),
      ...[...this.#constants.values()].map(constantField),
    ];
  }

  /** Returns the weights of rewritten convolutions that no other node uses. */
  #unusedWeights(nodes: Iterable<ProtobufField>, used: ReadonlySet<string>): Set<ProtobufField> {
    const unused = new Set<ProtobufField>();
    for (const { bytes } of nodes) {
      const [, weights = "", , zero = ""] = readNode(bytes).inputs;
      for (const name of [weights, zero]) {
        const field = used.has(name) ? undefined : this.#tensors.get(name);
        if (field) unused.add(field);
      }
    }
    return unused;
  }

  #convolutionOf(node: GraphNode): Convolution | undefined {
    if (node.operator !== "ConvInteger") return undefined;
    const [input = "", weightsName = "", inputZero = "", zeroName = ""] = node.inputs;
    const weights = this.#tensor(weightsName);
    const zero = this.#tensor(zeroName);
    if (!weights || zero?.data.length !== 1 || inputZero === "") return undefined;
    const [outputs = 0, inputs = 0] = weights.shape;
    const isWide = weights.shape.length === 3 && Math.min(outputs, inputs) >= leastChannels;
    if (!isWide || weights.type !== elementTypes.uint8 || !isPlain(node)) return undefined;
    const [before = 0, after = 0] = node.integers.get("pads") ?? [];
    return {
      node,
      input,
      inputZero,
      weights,
      weightsName,
      weightsZero: zero.data[0] ?? 0,
      dilation: node.integers.get("dilations")?.[0] ?? 1,
      pads: [before, after],
    };
  }

  #tensor(name: string): Tensor | undefined {
    const field = this.#tensors.get(name);
    return field && readTensor(field.bytes);
  }

  /**
   * Returns the nodes of the matrix product. The input [1, inputs, length] becomes a matrix [1, length,
   * inputs · taps]. The nodes multiply this matrix by the weights [inputs · taps, outputs], and transpose the
   * product.
   */
  #productOf({ node, input, inputZero, weights, weightsName, weightsZero, dilation, pads }: Convolution) {
    const [output = ""] = node.outputs;
    const own = (what: string) => `${prefix}/${output}/${what}`;
    const nodes: NewNode[] = [];
    const add = (
      operator: string,
      inputs: readonly string[],
      what: string,
      integersOf: NewNode["integers"] = {},
    ) => {
      const result = what === "" ? output : own(what);
      nodes.push({ name: own(what || "result"), operator, inputs, outputs: [result], integers: integersOf });
      return result;
    };
    let rows = add("Transpose", [input], "rows", { perm: [0, 2, 1] });
    if (pads[0] + pads[1] > 0) {
      rows = add("Pad", [rows, this.#integers([0, pads[0], 0, 0, pads[1], 0]), inputZero], "padded");
    }
    const taps = weights.shape[2] ?? 1;
    if (taps > 1) {
      const slices = Array.from({ length: taps }, (_, tap) => {
        const from = tap * dilation;
        const end = from - (taps - 1) * dilation;
        const bounds = [
          this.#integers([from]),
          this.#integers([end < 0 ? end : openEnd]),
          this.#integers([1]),
        ];
        return add("Slice", [rows, ...bounds], `tap${tap}`);
      });
      rows = add("Concat", slices, "taps", { axis: 2 });
    }
    const matrix = this.#matrix(weightsName, weights);
    const zero = this.#zero(weightsName, weightsZero);
    const product = add("MatMulInteger", [rows, matrix, inputZero, zero], "product");
    add("Transpose", [product], "", { perm: [0, 2, 1] });
    return nodes;
  }

  #integers(values: readonly number[]): string {
    const name = `${prefix}/integers/${values.join("_")}`;
    return this.#constant(name, () => integersConstant(name, values));
  }

  #matrix(weightsName: string, weights: Tensor): string {
    const name = `${prefix}/${weightsName}/matrix`;
    const [outputs = 0, inputs = 0, taps = 0] = weights.shape;
    const shape = [taps * inputs, outputs];
    return this.#constant(name, () => ({
      name,
      type: this.#weights,
      shape,
      data: transposed(weights, this.#offset),
    }));
  }

  #zero(weightsName: string, value: number): string {
    const name = `${prefix}/${weightsName}/zero`;
    const data = Uint8Array.of(value + this.#offset);
    return this.#constant(name, () => ({ name, type: this.#weights, shape: [], data }));
  }

  /**
   * The offset, in two's complement, that converts uint8 to the target type. The offset applies to the values
   * and to their zero point.
   */
  get #offset(): number {
    return this.#weights === "int8" ? -128 : 0;
  }

  #constant(name: string, make: () => NewTensor): string {
    if (!this.#constants.has(name)) this.#constants.set(name, make());
    return name;
  }
}

function isPlain({ integers: attributes }: GraphNode): boolean {
  const areOnes = (name: string) => (attributes.get(name) ?? []).every((value) => value === 1);
  return areOnes("group") && areOnes("strides");
}

/** Transposes [outputs, inputs, taps] to [taps, inputs, outputs]. */
function transposed({ shape, data }: Tensor, offset: number): Uint8Array {
  const [outputs = 0, inputs = 0, taps = 0] = shape;
  const matrix = new Uint8Array(data.length);
  let at = 0;
  for (let output = 0; output < outputs; output++) {
    for (let input = 0; input < inputs; input++) {
      for (let tap = 0; tap < taps; tap++) {
        matrix[(tap * inputs + input) * outputs + output] = (data[at++] ?? 0) + offset;
      }
    }
  }
  return matrix;
}

const tensorFields = { dimension: 1, type: 2, values32: 5, name: 8, data: 9 } as const;

function tensorName(tensor: Buffer): string {
  return (
    fieldsOf(tensor)
      .find(({ number }) => number === tensorFields.name)
      ?.bytes.toString() ?? ""
  );
}

function readTensor(tensor: Buffer): Tensor {
  const reader = Reader.create(tensor);
  const shape: number[] = [];
  let type = 0;
  let data: Buffer = Buffer.alloc(0);
  whileReading(reader, (number, wireType) => {
    if (number === tensorFields.dimension) shape.push(...integers(reader, wireType));
    else if (number === tensorFields.type) type = reader.int32();
    else if (number === tensorFields.data) data = Buffer.from(reader.bytes());
    else if (number === tensorFields.values32) data = Buffer.from(integers(reader, wireType));
    else reader.skipType(wireType);
  });
  return { shape, type, data };
}

const opsetFields = { domain: 1, version: 2 } as const;

/** Returns the version of the default operators, or 0 if the model states none. */
function opsetOf(parts: readonly ProtobufField[]): number {
  for (const { number, bytes } of parts) {
    if (number !== modelFields.opset) continue;
    const reader = Reader.create(bytes);
    let domain = "";
    let version = 0;
    whileReading(reader, (field, wireType) => {
      if (field === opsetFields.domain) domain = reader.string();
      else if (field === opsetFields.version) version = integers(reader, wireType)[0] ?? 0;
      else reader.skipType(wireType);
    });
    if (domain === "" || domain === "ai.onnx") return version;
  }
  return 0;
}
