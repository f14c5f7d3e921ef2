import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, test } from "vitest";
import { convolutionsAsProducts } from "../../../server/engine/neural/onnx/integer-convolutions.ts";
import { isExactForInt8 } from "../../../server/engine/neural/onnx/integer-kernels.ts";
import { readOutline } from "../../../server/engine/neural/onnx/onnx-graph.ts";
import { GraphWriter } from "../../support/voices/onnx-writer.ts";
import { tinyKokoro } from "../../support/voices/random-voices.ts";

const length = 40;

interface Convolution {
  readonly outputs?: number;
  readonly inputs?: number;
  readonly taps?: number;
  readonly dilation?: number;
  readonly pads?: readonly [number, number];
  readonly stride?: number;
}

/** Returns bytes from 100 to 155. Even a CPU with saturating arithmetic adds their products exactly. */
function smallBytes(count: number, seed: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => 100 + ((i * 7919 + seed * 104_729) % 56));
}

function graphWith({
  outputs = 64,
  inputs = 64,
  taps = 1,
  dilation = 1,
  pads,
  stride = 1,
}: Convolution): Buffer {
  const graph = new GraphWriter();
  graph.input("x", "uint8", [1, inputs, "n"]);
  const weights = graph.unsignedBytes(smallBytes(outputs * inputs * taps, 3), [outputs, inputs, taps]);
  const zeros = [graph.unsignedBytes(Uint8Array.of(117), []), graph.unsignedBytes(Uint8Array.of(130), [])];
  const [inputZero = "", weightsZero = ""] = zeros;
  const sums = graph.add("ConvInteger", ["x", weights, inputZero, weightsZero], {
    kernel_shape: [taps],
    dilations: [dilation],
    strides: [stride],
    ...(pads && { pads }),
  });
  graph.add("Cast", [sums], { to: 1 }, "y");
  graph.output("y", "float", [1, outputs, "m"]);
  return graph.bytes("convolution");
}

async function run(model: Buffer, inputs = 64): Promise<{ shape: readonly number[]; data: unknown }> {
  const session = await InferenceSession.create(model);
  const { y } = await session.run({
    x: new Tensor("uint8", smallBytes(inputs * length, 5), [1, inputs, length]),
  });
  await session.release();
  if (!y) throw new Error("the graph has no output y");
  return { shape: y.dims, data: y.data };
}

describe("convolutionsAsProducts", () => {
  test.each<Convolution>([
    { taps: 1 },
    { taps: 3, pads: [1, 1] },
    { taps: 3, pads: [3, 3], dilation: 3 },
    { taps: 5, dilation: 2 },
    { taps: 7, pads: [2, 4] },
    { outputs: 96, inputs: 80, taps: 3, pads: [1, 1] },
  ])("keeps the exact result of the convolution %o, with int8 and with uint8", async (convolution) => {
    const original = graphWith(convolution);
    const expected = await run(original, convolution.inputs);
    for (const weights of ["int8", "uint8"] as const) {
      const { model, convolutions } = convolutionsAsProducts(original, weights);
      expect(convolutions).toBe(1);
      expect(readOutline(model).nodes.map(({ operator }) => operator)).not.toContain("ConvInteger");
      expect(await run(model, convolution.inputs), weights).toEqual(expected);
      expect(Math.abs(model.length - original.length), "the old weights are removed").toBeLessThan(3000);
    }
  });

  test.each<[string, Buffer]>([
    ["few channels", graphWith({ outputs: 32 })],
    ["strides", graphWith({ taps: 3, stride: 2 })],
    ["no integer convolution", tinyKokoro()],
  ])("does not change a graph with %s", (_what, original) => {
    const { model, convolutions } = convolutionsAsProducts(original, "int8");
    expect(convolutions).toBe(0);
    expect(model).toBe(original);
  });
});

test("isExactForInt8 tests on this CPU whether the products of large 8-bit integers are exact", async () => {
  expect(typeof (await isExactForInt8())).toBe("boolean");
});
