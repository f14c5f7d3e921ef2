import { InferenceSession, Tensor } from "onnxruntime-node";
import { sessionOptions } from "./model-spec.ts";
import { bytesField, fieldHead, graphFields, modelFields } from "./onnx-graph.ts";
import { constantField, elementTypes, nodeField } from "./onnx-writer.ts";

/**
 * Detects CPUs whose integer products are not exact. x86 CPUs without VNNI add products of uint8
 * and int8 in pairs of 16 bits, which saturate at 32,767, and a graph with int8 weights then produces noise.
 * ONNX Runtime's documentation describes this saturation ("Quantize ONNX models", "Data type selection").
 */

const rows = 8;
const inner = 256;
const columns = 64;
const largest = { uint8: 255, int8: 127 } as const;

/** Returns whether ONNX Runtime multiplies uint8 and int8 exactly on this CPU. */
export async function isExactForInt8(): Promise<boolean> {
  const session = await InferenceSession.create(
    productGraph(),
    sessionOptions({ providers: ["cpu"], threads: 1 }),
  );
  try {
    const x = new Tensor("uint8", new Uint8Array(rows * inner).fill(largest.uint8), [rows, inner]);
    const { product } = await session.run({ x });
    const sums = product?.data;
    const expected = inner * largest.uint8 * largest.int8;
    return sums instanceof Int32Array && sums.every((sum) => sum === expected);
  } finally {
    await session.release();
  }
}

function productGraph(): Buffer {
  const matrix = new Uint8Array(inner * columns).fill(largest.int8);
  const parts = [
    nodeField({ name: "product", operator: "MatMulInteger", inputs: ["x", "w"], outputs: ["product"] }),
    bytesField(graphName, Buffer.from("exactness")),
    constantField({ name: "w", type: "int8", shape: [inner, columns], data: matrix }),
    bytesField(graphFields.input, valueInfo("x", elementTypes.uint8, [rows, inner])),
    bytesField(graphFields.output, valueInfo("product", elementTypes.int32, [rows, columns])),
  ];
  const graph = Buffer.concat(parts);
  const version = Buffer.from([irVersionTag, 8]);
  const opset = bytesField(modelFields.opset, Buffer.from([versionTag, 15]));
  return Buffer.concat([version, fieldHead(modelFields.graph, graph.length), graph, opset]);
}

const graphName = 2;
const irVersionTag = 8;
const versionTag = 16;

/** Encodes the name, type and shape of a value. Each dimension must be below 16,384. */
function valueInfo(name: string, type: number, shape: readonly number[]): Buffer {
  const dimensions = shape.map((size) => bytesField(1, Buffer.from([8, (size & 127) | 128, size >> 7])));
  const tensor = Buffer.concat([Buffer.from([8, type]), bytesField(2, Buffer.concat(dimensions))]);
  return Buffer.concat([bytesField(1, Buffer.from(name)), bytesField(2, bytesField(1, tensor))]);
}
