/** What we need of an ONNX file before it is loaded (onnx.proto: ModelProto.graph is field 7). */

export interface GraphNames {
  readonly outputs: readonly string[];
  /** Values that its Ceil operators make. */
  readonly ceilings: readonly string[];
}

interface Field {
  readonly number: number;
  /** Empty for fields that are not bytes. */
  readonly bytes: Buffer;
}

const fieldNumbers = {
  graph: 7,
  node: 1,
  nodeOutput: 2,
  operator: 4,
  graphOutput: 12,
  valueName: 1,
} as const;
const lengthDelimited = 2;

/** @throws Error when the bytes are no protocol buffer. */
export function readGraphNames(model: Buffer): GraphNames {
  const outputs: string[] = [];
  const ceilings: string[] = [];
  for (const part of inside(model, fieldNumbers.graph)) {
    for (const { number, bytes } of fields(part)) {
      if (number === fieldNumbers.graphOutput) outputs.push(...texts(bytes, fieldNumbers.valueName));
      if (number === fieldNumbers.node && texts(bytes, fieldNumbers.operator)[0] === "Ceil") {
        ceilings.push(...texts(bytes, fieldNumbers.nodeOutput));
      }
    }
  }
  return { outputs, ceilings };
}

/** The model with one of its inner values as one more output: appended, as messages that follow each other are merged. */
export function withOutput(model: Buffer, name: string): Buffer {
  const value = bytesField(fieldNumbers.valueName, Buffer.from(name));
  const graph = bytesField(fieldNumbers.graphOutput, value);
  return Buffer.concat([model, bytesField(fieldNumbers.graph, graph)]);
}

function bytesField(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | lengthDelimited), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest % 128) + 128);
  return Buffer.from([...out, rest]);
}

function inside(message: Buffer, wanted: number): Buffer[] {
  return [...fields(message)].filter(({ number }) => number === wanted).map(({ bytes }) => bytes);
}

function texts(message: Buffer, wanted: number): string[] {
  return inside(message, wanted).map((bytes) => bytes.toString());
}

/** Sizes of fields by wire type, where they are fixed. */
const fixedBytes: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

function* fields(message: Buffer): Generator<Field> {
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++];
      if (byte === undefined || factor > 2 ** 63) throw new Error("it is cut short, or no ONNX model");
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = number();
    const wireType = tag % 8;
    const length = wireType === lengthDelimited ? number() : (fixedBytes[wireType] ?? 0);
    if (wireType === 0) number();
    else if (length === 0 && wireType !== lengthDelimited) throw new Error("it is no ONNX model");
    if (at + length > message.length) throw new Error("it is cut short, or no ONNX model");
    yield {
      number: Math.floor(tag / 8),
      bytes: message.subarray(at, wireType === lengthDelimited ? at + length : at),
    };
    at += length;
  }
}
