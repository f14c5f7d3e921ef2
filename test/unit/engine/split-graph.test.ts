import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, test } from "vitest";
import {
  meanNames,
  meansOf,
  withGivenMeans,
  withMeanOutputs,
} from "../../../server/engine/neural/onnx/given-means.ts";
import { readOutline } from "../../../server/engine/neural/onnx/onnx-graph.ts";
import { subgraph } from "../../../server/engine/neural/onnx/subgraph.ts";
import { GraphWriter } from "../../support/voices/onnx-writer.ts";

const operatorSet = 18;
const shape = [1, 2, 4];

/** Returns a graph that doubles `x`, subtracts the mean over time, and adds `style`. */
function normalizingGraph(): Buffer {
  const graph = new GraphWriter();
  graph.input("x", "float", [1, 2, "n"]);
  graph.input("style", "float", [1]);
  graph.add("Mul", ["x", graph.floats([2], [1])], {}, "doubled");
  const mean = graph.add("ReduceMean", ["doubled", graph.integers([2], [1])], {}, "mean");
  graph.add("Sub", ["doubled", mean], {}, "centred");
  graph.add("Add", ["centred", "style"], {}, "y");
  graph.output("y", "float", [1, 2, "n"]);
  return graph.bytes("normalizing", operatorSet);
}

const tensor = (values: readonly number[], dims: readonly number[]) =>
  new Tensor("float32", Float32Array.from(values), dims);
const doubled = tensor([2, 4, 6, 8, 20, 20, 20, 60], shape);
const style = tensor([0], [1]);

async function run(model: Buffer, feeds: Record<string, Tensor>) {
  const session = await InferenceSession.create(model);
  const results = await session.run(feeds);
  await session.release();
  return Object.fromEntries(
    Object.entries(results).map(([name, { data }]) => [name, [...(data as Float32Array)]]),
  );
}

describe("subgraph", () => {
  test("computes the outputs from values inside the graph", async () => {
    const model = subgraph(normalizingGraph(), {
      inputs: [{ value: "doubled", name: "features" }],
      outputs: [{ value: "y", name: "waveform" }],
    });
    expect(readOutline(model).nodes.map(({ operator }) => operator)).not.toContain("Mul");
    expect(await run(model, { features: doubled, style })).toEqual({
      waveform: [-3, -1, 1, 3, -10, -10, -10, 30],
    });
  });

  test("keeps only the inputs that the outputs need", async () => {
    const model = subgraph(normalizingGraph(), {
      inputs: [],
      outputs: [{ value: "doubled", name: "features" }],
    });
    const session = await InferenceSession.create(model);
    expect([session.inputNames, session.outputNames]).toEqual([["x"], ["features"]]);
    await session.release();
  });

  test("rejects an output that no node computes", () => {
    const outputs = [{ value: "other", name: "other" }];
    expect(() => subgraph(normalizingGraph(), { inputs: [], outputs })).toThrow(
      "no node of the graph computes other",
    );
  });
});

describe("a graph with given means", () => {
  const feeds = { x: tensor([1, 2, 3, 4, 10, 10, 10, 30], shape), style };
  const given = tensor([1, 10], [1, 2, 1]);
  const withShare = (share: number) => ({
    ...feeds,
    [meanNames.given]: given,
    [meanNames.share]: tensor([share], [1, 1, 1]),
  });

  test("uses its own means or the given means, and returns its own means", async () => {
    const model = withGivenMeans(normalizingGraph(), [2]);
    const own = [5, 30];
    expect(await run(model, withShare(0))).toEqual({
      y: [-3, -1, 1, 3, -10, -10, -10, 30],
      [meanNames.own]: own,
    });
    expect(await run(model, withShare(1))).toEqual({
      y: [1, 3, 5, 7, 10, 10, 10, 50],
      [meanNames.own]: own,
    });
  });

  test("has the means of its nodes in the order of their names", async () => {
    expect(meansOf(normalizingGraph())).toEqual(["mean"]);
    expect(await run(withMeanOutputs(normalizingGraph()), feeds)).toMatchObject({ mean: [5, 30] });
  });
});
