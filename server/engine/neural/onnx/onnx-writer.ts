import protobuf from "protobufjs/minimal.js";
import { bytesField, graphFields } from "./onnx-graph.ts";

/** Writes parts of ONNX files (onnx.proto). */

const { Writer } = protobuf;

/** The element types of tensors in onnx.proto. */
export const elementTypes = { uint8: 2, int8: 3, int32: 6, int64: 7 } as const;

export interface NewNode {
  readonly name: string;
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** The attributes, each of which is an integer or a list of integers. */
  readonly integers?: Readonly<Record<string, number | readonly number[]>>;
}

export interface NewTensor {
  readonly name: string;
  readonly type: keyof typeof elementTypes;
  readonly shape: readonly number[];
  /** The elements in little-endian byte order. */
  readonly data: Uint8Array;
}

/** The protobuf tags, which combine the number and the wire type of a field. */
const tags = {
  node: { input: 10, output: 18, name: 26, operator: 34, attribute: 42 },
  attribute: { name: 10, integer: 24, integers: 64, type: 160 },
  tensor: { dimension: 8, type: 16, name: 66, data: 74 },
} as const;
const attributeTypes = { integer: 2, integers: 7 } as const;

/** Encodes a node as a field of a graph. */
export function nodeField({ name, operator, inputs, outputs, integers = {} }: NewNode): Buffer {
  const writer = Writer.create();
  for (const input of inputs) writer.uint32(tags.node.input).string(input);
  for (const output of outputs) writer.uint32(tags.node.output).string(output);
  writer.uint32(tags.node.name).string(name).uint32(tags.node.operator).string(operator);
  for (const [key, value] of Object.entries(integers)) {
    writer.uint32(tags.node.attribute).fork().uint32(tags.attribute.name).string(key);
    if (typeof value === "number") writer.uint32(tags.attribute.integer).int64(value);
    else for (const item of value) writer.uint32(tags.attribute.integers).int64(item);
    writer.uint32(tags.attribute.type);
    writer.int32(typeof value === "number" ? attributeTypes.integer : attributeTypes.integers).ldelim();
  }
  return bytesField(graphFields.node, writer.finish());
}

/** Encodes a tensor as a constant of a graph. */
export function constantField({ name, type, shape, data }: NewTensor): Buffer {
  const writer = Writer.create();
  for (const dimension of shape) writer.uint32(tags.tensor.dimension).int64(dimension);
  writer.uint32(tags.tensor.type).int32(elementTypes[type]).uint32(tags.tensor.name).string(name);
  return bytesField(graphFields.initializer, writer.uint32(tags.tensor.data).bytes(data).finish());
}

/** Creates a constant of 64-bit integers. */
export function integersConstant(name: string, values: readonly number[]): NewTensor {
  const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  return { name, type: "int64", shape: [values.length], data };
}

const valueTags = { name: 10, type: 18, tensorType: 10, elementType: 8, shape: 18, dimension: 10 } as const;
const float32 = 1;

/**
 * Creates the declaration of an input or an output.
 * @param dimensions the number of dimensions of float32 values, each of any size. ONNX Runtime finds the type
 * of an output without this number.
 */
export function valueField(field: number, name: string, dimensions?: number): Buffer {
  const writer = Writer.create().uint32(valueTags.name).string(name);
  if (dimensions !== undefined) {
    writer.uint32(valueTags.type).fork().uint32(valueTags.tensorType).fork();
    writer.uint32(valueTags.elementType).int32(float32).uint32(valueTags.shape).fork();
    for (let dimension = 0; dimension < dimensions; dimension++)
      writer.uint32(valueTags.dimension).fork().ldelim();
    writer.ldelim().ldelim().ldelim();
  }
  return bytesField(field, writer.finish());
}
