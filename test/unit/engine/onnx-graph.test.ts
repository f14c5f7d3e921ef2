import { expect, test } from "vitest";
import { fieldsOf, madeBy, readOutline, withOutput } from "../../../server/engine/neural/onnx/onnx-graph.ts";
import { tinyKokoro, tinyPiper } from "../../support/voices/random-voices.ts";

test.each([
  { name: "Piper's", model: tinyPiper(), outputs: ["output"], ceilings: 1, clips: 0 },
  { name: "Kokoro's", model: tinyKokoro(), outputs: ["waveform", "durations"], ceilings: 1, clips: 0 },
  {
    name: "Kokoro's as it comes",
    model: tinyKokoro({ durations: "inside" }),
    outputs: ["waveform"],
    ceilings: 0,
    clips: 1,
  },
])("the outputs and operators of a graph are found $name", ({ model, outputs, ceilings, clips }) => {
  const outline = readOutline(model);
  expect(outline.outputs).toEqual(outputs);
  expect(madeBy(outline, "Ceil")).toHaveLength(ceilings);
  expect(madeBy(outline, "Clip")).toHaveLength(clips);
});

test("the inputs and integer attributes of an operator are read", () => {
  const { nodes } = readOutline(tinyKokoro());
  const up = nodes.find(({ operator }) => operator === "ConvTranspose");
  expect(up?.inputs).toHaveLength(2);
  expect(Object.fromEntries(up?.integers ?? [])).toEqual({ strides: [600], pads: [300, 300] });
});

test("an inner value becomes an additional output", () => {
  const model = tinyPiper();
  const [ceiling = ""] = madeBy(readOutline(model), "Ceil");
  expect(readOutline(withOutput(model, ceiling)).outputs).toEqual(["output", ceiling]);
});

test("the fields of a file, put together again, are the file", () => {
  const model = tinyKokoro();
  expect(Buffer.concat(fieldsOf(model).map(({ raw }) => raw)).equals(model)).toBe(true);
});

test.each([
  ["cut short", tinyPiper().subarray(0, 20_000)],
  ["no model", Buffer.from("not found: this is a page of a web server".repeat(10))],
])("a file that is %s is refused, and is not read past its end", (_what, bytes) => {
  expect(() => readOutline(bytes)).toThrow(/truncated|not an ONNX model/);
});
