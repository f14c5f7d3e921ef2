import { expect, test } from "vitest";
import { readGraphNames, withOutput } from "../../../server/engine/neural/onnx-graph.ts";
import { tinyKokoro, tinyPiper } from "../../support/voices/random-voices.ts";

test.each([
  { name: "Piper's", model: tinyPiper, outputs: ["output"], ceilings: 1 },
  { name: "Kokoro's", model: tinyKokoro, outputs: ["waveform", "durations"], ceilings: 1 },
])("a graph's outputs and Ceil operators are found: $name", ({ model, outputs, ceilings }) => {
  const names = readGraphNames(model());
  expect(names.outputs).toEqual(outputs);
  expect(names.ceilings).toHaveLength(ceilings);
});

test("an inner value becomes one more output", () => {
  const model = tinyPiper();
  const [ceiling = ""] = readGraphNames(model).ceilings;
  expect(readGraphNames(withOutput(model, ceiling)).outputs).toEqual(["output", ceiling]);
});

test.each([
  ["cut short", tinyPiper().subarray(0, 20_000)],
  ["no model", Buffer.from("not found: this is a page of a web server".repeat(10))],
])("a file that is %s is told so, not read past its end", (_what, bytes) => {
  expect(() => readGraphNames(bytes)).toThrow(/cut short|no ONNX model/);
});
