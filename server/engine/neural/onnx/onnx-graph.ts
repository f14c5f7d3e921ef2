import protobuf, { type Reader as MessageReader } from "protobufjs/minimal.js";

/**
 * Reads ONNX files field by field (onnx.proto). Fields that are not requested are skipped, and keep their
 * bytes.
 */

const { Reader, Writer } = protobuf;

/** An operator of the graph. */
export interface GraphNode {
  readonly name: string;
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Attributes that are one integer or several. */
  readonly integers: ReadonlyMap<string, readonly number[]>;
}

/** Parts of a graph, without its weights. */
export interface GraphOutline {
  readonly outputs: readonly string[];
  readonly nodes: readonly GraphNode[];
}

/** One field of a message, with tag and length. */
export interface ProtobufField {
  readonly number: number;
  readonly raw: Buffer;
  /** Content of the field. Empty for a field without bytes. */
  readonly bytes: Buffer;
}

export const modelFields = { graph: 7, opset: 8 } as const;
export const graphFields = { node: 1, initializer: 5, output: 12 } as const;
const nodeFields = { input: 1, output: 2, name: 3, operator: 4, attribute: 5 } as const;
const attributeFields = { name: 1, integer: 3, integers: 8 } as const;
const valueName = 1;
const lengthDelimited = 2;

/** @throws Error if the bytes are not an ONNX model. */
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

/** Values that operators of this kind produce. */
export function madeBy({ nodes }: GraphOutline, operator: string): string[] {
  return nodes.filter((node) => node.operator === operator).flatMap(({ outputs }) => outputs);
}

/**
 * The model with one of its inner values as an additional output. The field is appended, because parsers
 * merge messages that follow each other.
 */
export function withOutput(model: Buffer, name: string): Buffer {
  const value = bytesField(valueName, Buffer.from(name));
  const graph = bytesField(graphFields.output, value);
  return Buffer.concat([model, bytesField(modelFields.graph, graph)]);
}

/** @throws Error if the bytes are not a protocol buffer. */
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

/** Integers of a repeated field, packed or single. */
export function integers(reader: MessageReader, wireType: number): number[] {
  if (wireType !== lengthDelimited) return [integer(reader)];
  const values: number[] = [];
  for (const end = reader.uint32() + reader.pos; reader.pos < end; ) values.push(integer(reader));
  return values;
}

function integer(reader: MessageReader): number {
  return Number(reader.int64().toString());
}

/** Fields of a message in order, without copies. @throws Error if the bytes are not a protocol buffer. */
export function fieldsOf(message: Buffer): ProtobufField[] {
  const reader = Reader.create(message);
  const found: ProtobufField[] = [];
  let from = 0;
  whileReading(reader, (number, wireType) => {
    const isBytes = wireType === lengthDelimited;
    const length = isBytes ? reader.uint32() : 0;
    const at = reader.pos;
    if (isBytes) reader.skip(length);
    else reader.skipType(wireType);
    found.push({
      number,
      raw: message.subarray(from, reader.pos),
      bytes: message.subarray(at, at + length),
    });
    from = reader.pos;
  });
  return found;
}

/**
 * Calls `take` at each field; it reads or skips the field. @throws Error if the bytes are not a protocol
 * buffer.
 */
export function whileReading(reader: MessageReader, take: (number: number, wireType: number) => void): void {
  try {
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag >>> 3 === 0) throw new Error("a field has no number");
      take(tag >>> 3, tag & 7);
    }
  } catch (cause) {
    throw new Error("it is truncated, or not an ONNX model", { cause });
  }
}

function texts(fields: readonly ProtobufField[], wanted: number): string[] {
  return fields.filter(({ number }) => number === wanted).map(({ bytes }) => bytes.toString());
}

/** A field of bytes, copied. */
export function bytesField(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([fieldHead(number, bytes.length), bytes]);
}

/** Tag and length before a field's bytes. */
export function fieldHead(number: number, length: number): Buffer {
  return Buffer.from(
    Writer.create()
      .uint32((number << 3) | lengthDelimited)
      .uint32(length)
      .finish(),
  );
}
