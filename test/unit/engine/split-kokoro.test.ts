import { describe, expect, test } from "vitest";
import { readOutline } from "../../../server/engine/neural/onnx/onnx-graph.ts";
import { splitAtGenerator } from "../../../server/engine/rewriting/split.ts";
import { GraphWriter } from "../../support/voices/onnx-writer.ts";

/** Returns a graph with the structure of Kokoro, which is never run. */
function kokoroGraph({ strides = [10, 6], transforms = 1 } = {}): Buffer {
  const graph = new GraphWriter();
  graph.input("tokens", "int64", [1, "n"]);
  graph.input("style", "float", [1, 256]);
  graph.input("speed", "float", [1]);
  const rounded = graph.add("Round", ["tokens"]);
  const durations = graph.add("Clip", [rounded]);
  const features = graph.add("Mul", [durations, "speed"], {}, "decoded");
  for (let i = 0; i < transforms; i++) {
    const spectrum = graph.add("STFT", [features]);
    const halves = [graph.add("Sqrt", [spectrum]), graph.add("Atan", [spectrum])];
    graph.add("Concat", halves, { axis: 1 }, `harmonics${i}`);
  }
  let value = features;
  for (const stride of strides) {
    const activated = graph.add("LeakyRelu", [value]);
    value = graph.add("ConvTranspose", [activated, "style"], { strides: [stride] });
  }
  graph.add("Add", [value, "harmonics0"], {}, "audio");
  graph.output("audio", "float", ["samples"]);
  return graph.bytes("kokoro");
}

const operatorsOf = (model: Buffer) => readOutline(model).nodes.map(({ operator }) => operator);

describe("splitAtGenerator", () => {
  test("puts everything before the first transposed convolution with stride 10 into the front", () => {
    const { front, generator } = splitAtGenerator(kokoroGraph());
    expect(readOutline(front).outputs).toEqual(["features", "source", "durations"]);
    expect(operatorsOf(front)).toContain("STFT");
    expect(operatorsOf(front)).not.toContain("ConvTranspose");
    expect(readOutline(generator).outputs).toEqual(["waveform"]);
    expect(operatorsOf(generator).filter((operator) => operator !== "Identity")).toEqual([
      "LeakyRelu",
      "ConvTranspose",
      "LeakyRelu",
      "ConvTranspose",
      "Add",
    ]);
  });

  test.each([
    {
      what: "no such convolution",
      choice: { strides: [8, 6] },
      problem: "the graph must have one transposed convolution with stride 10; it has 0",
    },
    {
      what: "two such convolutions",
      choice: { strides: [10, 10] },
      problem: "the graph must have one transposed convolution with stride 10; it has 2",
    },
    {
      what: "two Fourier transforms",
      choice: { transforms: 2 },
      problem: "the graph must have one Fourier transform; it has 2",
    },
  ])("rejects a graph with $what", ({ choice, problem }) => {
    expect(() => splitAtGenerator(kokoroGraph(choice))).toThrow(problem);
  });
});
