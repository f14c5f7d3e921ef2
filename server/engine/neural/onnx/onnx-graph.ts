import protobuf, { type Reader as MessageReader } from "protobufjs/minimal.js";

/** Reads ONNX files (onnx.proto) field by field. A field that is not decoded keeps its bytes. */

const { Reader, Writer } = protobuf;

/** A node of the graph. */
export interface GraphNode {
  readonly name: string;
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** The attributes that are an integer or a list of integers. */
  readonly integers: ReadonlyMap<string, readonly number[]>;
}

/** The outputs and the nodes of a graph. */
export interface GraphOutline {
  readonly outputs: readonly string[];
  readonly nodes: readonly GraphNode[];
}

/** One field of a message. `raw` includes its tag and length. */
export interface ProtobufField {
  readonly number: number;
  readonly raw: Buffer;
  /** The content of the field, without tag and length. The value is empty if the field is a number. */
  readonly bytes: Buffer;
}

export const modelFields = { graph: 7, opset: 8 } as const;
export const graphFields = { node: 1, initializer: 5, input: 11, output: 12 } as const;
const nodeFields = { input: 1, output: 2, name: 3, operator: 4, attribute: 5 } as const;
const attributeFields = { name: 1, integer: 3, integers: 8 } as const;
const valueName = 1;
const lengthDelimited = 2;

/**
 * Reads the outline of a model's graph.
 * @throws Error if the bytes are not an ONNX model.
 */
export function readOutline(model: Buffer): GraphOutline {
  const outputs: string[] = [];
  const nodes: GraphNode[] = [];
  for (const graph of fieldsOf(model)) {
    if (graph.number !== modelFields.graph) continue;
    for (const { number, bytes } of fieldsOf(graph.bytes)) {
      if (number === graphFields.node) nodes.push(readNode(bytes));
      if (number === graphFields.output) outputs.push(...texts(fieldsOf(bytes), valueName));
    }
  }
  return { outputs, nodes };
}

/** Returns the names of the values that operators of a kind produce. */
export function madeBy({ nodes }: GraphOutline, operator: string): string[] {
  return nodes.filter((node) => node.operator === operator).flatMap(({ outputs }) => outputs);
}

/**
 * Returns the model with an inner value as an additional output. The output is appended to the file, because
 * a parser merges fields of the same message.
 */
export function withOutput(model: Buffer, name: string): Buffer {
  const value = bytesField(valueName, Buffer.from(name));
  const graph = bytesField(graphFields.output, value);
  return Buffer.concat([model, bytesField(modelFields.graph, graph)]);
}

/**
 * Decodes a node.
 * @throws Error if the bytes are not a protocol buffer.
 */
export function readNode(node: Buffer): GraphNode {
  const fields = fieldsOf(node);
  const attributes = fields.filter(({ number }) => number === nodeFields.attribute);
  return {
    name: texts(fields, nodeFields.name)[0] ?? "",
    operator: texts(fields, nodeFields.operator)[0] ?? "",
    inputs: texts(fields, nodeFields.input),
    outputs: texts(fields, nodeFields.output),
    integers: new Map(attributes.map(({ bytes }) => readIntegers(bytes))),
  };
}

function readIntegers(attribute: Buffer): [name: string, values: number[]] {
  const reader = Reader.create(attribute);
  let name = "";
  const values: number[] = [];
  whileReading(reader, (number, wireType) => {
    if (number === attributeFields.name) name = reader.string();
    else if (number === attributeFields.integer) values.push(integer(reader));
    else if (number === attributeFields.integers) values.push(...integers(reader, wireType));
    else reader.skipType(wireType);
  });
  return [name, values];
}

/** Reads the integers of a repeated field, which may be packed. */
export function integers(reader: MessageReader, wireType: number): number[] {
  if (wireType !== lengthDelimited) return [integer(reader)];
  const values: number[] = [];
  for (const end = reader.uint32() + reader.pos; reader.pos < end; ) values.push(integer(reader));
  return values;
}

function integer(reader: MessageReader): number {
  return Number(reader.int64().toString());
}

/**
 * Returns the fields of a message in order, without a copy of their bytes.
 * @throws Error if the bytes are not a protocol buffer.
 */
export function fieldsOf(message: Buffer): ProtobufField[] {
  const reader = Reader.create(message);
  const fields: ProtobufField[] = [];
  let from = 0;
  whileReading(reader, (number, wireType) => {
    const isBytes = wireType === lengthDelimited;
    const length = isBytes ? reader.uint32() : 0;
    const at = reader.pos;
    if (isBytes) reader.skip(length);
    else reader.skipType(wireType);
    fields.push({
      number,
      raw: message.subarray(from, reader.pos),
      bytes: message.subarray(at, at + length),
    });
    from = reader.pos;
  });
  return fields;
}

/**
 * Calls `readField` at each field. `readField` must read or skip the field.
 * @throws Error if the bytes are not a protocol buffer.
 */
export function whileReading(
  reader: MessageReader,
  readField: (number: number, wireType: number) => void,
): void {
  try {
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag >>> 3 === 0) throw new Error("a field has no number");
      readField(tag >>> 3, tag & 7);
    }
  } catch (cause) {
    throw new Error("the file is truncated, or is not an ONNX model", { cause });
  }
}

function texts(fields: readonly ProtobufField[], fieldNumber: number): string[] {
  return fields.filter(({ number }) => number === fieldNumber).map(({ bytes }) => bytes.toString());
}

/** Encodes a field of bytes. The bytes are copied. */
export function bytesField(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([fieldHead(number, bytes.length), bytes]);
}

/** Encodes the tag and the length that precede a field's bytes. */
export function fieldHead(number: number, length: number): Buffer {
  return Buffer.from(
    Writer.create()
      .uint32((number << 3) | lengthDelimited)
      .uint32(length)
      .finish(),
  );
}
