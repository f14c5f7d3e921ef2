import { expect, test } from "vitest";
import { fieldsOf, madeBy, readOutline, withOutput } from "../../../server/engine/neural/onnx/onnx-graph.ts";
import { tinyKokoro, tinyPiper } from "../../support/voices/random-voices.ts";

test.each([
  { name: "Piper", model: tinyPiper(), outputs: ["output"], ceilings: 1, clips: 0 },
  { name: "Kokoro", model: tinyKokoro(), outputs: ["waveform", "durations"], ceilings: 1, clips: 0 },
  {
    name: "Kokoro without an output for durations",
    model: tinyKokoro({ durations: "inside" }),
    outputs: ["waveform"],
    ceilings: 0,
    clips: 1,
  },
])(
  "readOutline returns the outputs and operators of a graph of $name",
  ({ model, outputs, ceilings, clips }) => {
    const outline = readOutline(model);
    expect(outline.outputs).toEqual(outputs);
    expect(madeBy(outline, "Ceil")).toHaveLength(ceilings);
    expect(madeBy(outline, "Clip")).toHaveLength(clips);
  },
);

test("readOutline returns the inputs and integer attributes of an operator", () => {
  const { nodes } = readOutline(tinyKokoro());
  const up = nodes.find(({ operator }) => operator === "ConvTranspose");
  expect(up?.inputs).toHaveLength(2);
  expect(Object.fromEntries(up?.integers ?? [])).toEqual({ strides: [600], pads: [300, 300] });
});

test("withOutput adds an inner value to the outputs", () => {
  const model = tinyPiper();
  const [ceiling = ""] = madeBy(readOutline(model), "Ceil");
  expect(readOutline(withOutput(model, ceiling)).outputs).toEqual(["output", ceiling]);
});

test("fieldsOf returns fields whose concatenation is the file", () => {
  const model = tinyKokoro();
  expect(Buffer.concat(fieldsOf(model).map(({ raw }) => raw)).equals(model)).toBe(true);
});

test.each([
  ["truncated", tinyPiper().subarray(0, 20_000)],
  ["not a model", Buffer.from("not found: this is a page of a web server".repeat(10))],
])("readOutline refuses a file that is %s", (_what, bytes) => {
  expect(() => readOutline(bytes)).toThrow(/truncated|not an ONNX model/);
});
