/** Writes ONNX files (onnx.proto). It supports only the parts of the format that the tests need. */

const types = { float: 1, uint8: 2, int32: 6, int64: 7 } as const;
type ElementType = keyof typeof types;

/** The shape of a tensor. A number is a fixed dimension, and a text is the name of a variable dimension. */
type Shape = readonly (number | string)[];

interface Node {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, number | readonly number[]>>;
}

/** Builds a graph. The methods that add operators return the names of the outputs. */
export class GraphWriter {
  readonly #nodes: Node[] = [];
  readonly #constants: Buffer[] = [];
  readonly #inputs: Buffer[] = [];
  readonly #outputs: Buffer[] = [];
  #valueCount = 0;

  input(name: string, type: ElementType, shape: Shape): string {
    this.#inputs.push(valueInfo(name, type, shape));
    return name;
  }

  output(name: string, type: ElementType, shape: Shape): void {
    this.#outputs.push(valueInfo(name, type, shape));
  }

  floats(values: Float32Array | readonly number[], shape: readonly number[]): string {
    const data = values instanceof Float32Array ? values : Float32Array.from(values);
    return this.#constant(types.float, shape, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  }

  integers(values: readonly number[], shape: readonly number[]): string {
    const data = BigInt64Array.from(values, BigInt);
    return this.#constant(types.int64, shape, Buffer.from(data.buffer));
  }

  unsignedBytes(values: Uint8Array, shape: readonly number[]): string {
    return this.#constant(types.uint8, shape, Buffer.from(values));
  }

  /** @param as the name of the output */
  add(
    operator: string,
    inputs: readonly string[],
    attributes: Node["attributes"] = {},
    as = `v${this.#valueCount++}`,
  ): string {
    this.#nodes.push({ operator, inputs, outputs: [as], attributes });
    return as;
  }

  /** Adds an operator with several outputs. */
  addSeveral(operator: string, inputs: readonly string[], count: number): string[] {
    const outputs = Array.from({ length: count }, () => `v${this.#valueCount++}`);
    this.#nodes.push({ operator, inputs, outputs, attributes: {} });
    return outputs;
  }

  /** Returns the bytes of the file. */
  bytes(name: string, operatorSet = 15): Buffer {
    const graph = Buffer.concat([
      ...this.#nodes.map((node) => bytesField(1, encodeNode(node))),
      textField(2, name),
      ...this.#constants.map((constant) => bytesField(5, constant)),
      ...this.#inputs.map((input) => bytesField(11, input)),
      ...this.#outputs.map((output) => bytesField(12, output)),
    ]);
    const opset = bytesField(8, intField(2, operatorSet));
    return Buffer.concat([intField(1, 8), bytesField(7, graph), opset]);
  }

  #constant(type: number, shape: readonly number[], raw: Buffer): string {
    const name = `c${this.#constants.length}`;
    const dims = shape.map((size) => intField(1, size));
    this.#constants.push(Buffer.concat([...dims, intField(2, type), textField(8, name), bytesField(9, raw)]));
    return name;
  }
}

function encodeNode({ operator, inputs, outputs, attributes }: Node): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => textField(1, name)),
    ...outputs.map((name) => textField(2, name)),
    textField(4, operator),
    ...Object.entries(attributes).map(([name, value]) => bytesField(5, encodeAttribute(name, value))),
  ]);
}

const attributeTypes = { float: 1, int: 2, ints: 7 } as const;

/** Encodes an attribute. An integer becomes an integer attribute, and any other number a float attribute. */
function encodeAttribute(name: string, value: number | readonly number[]): Buffer {
  const head = textField(1, name);
  if (typeof value !== "number") {
    const all = value.map((item) => intField(8, item));
    return Buffer.concat([head, ...all, intField(20, attributeTypes.ints)]);
  }
  if (Number.isInteger(value))
    return Buffer.concat([head, intField(3, value), intField(20, attributeTypes.int)]);
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([head, tag(2, 5), bytes, intField(20, attributeTypes.float)]);
}

function valueInfo(name: string, type: ElementType, shape: Shape): Buffer {
  const dims = shape.map((size) =>
    bytesField(1, typeof size === "number" ? intField(1, size) : textField(2, size)),
  );
  const tensor = Buffer.concat([intField(1, types[type]), bytesField(2, Buffer.concat(dims))]);
  return Buffer.concat([textField(1, name), bytesField(2, bytesField(1, tensor))]);
}

function textField(number: number, text: string): Buffer {
  return bytesField(number, Buffer.from(text));
}

function bytesField(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([tag(number, 2), varint(bytes.length), bytes]);
}

function intField(number: number, value: number): Buffer {
  return Buffer.concat([tag(number, 0), varint(value)]);
}

function tag(number: number, wireType: number): Buffer {
  return varint(number * 8 + wireType);
}

/** Encodes a number as a 64-bit two's complement varint, as protocol buffers require for negative numbers. */
function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) out.push(Number(rest & 127n) | 128);
  return Buffer.from([...out, Number(rest)]);
}
