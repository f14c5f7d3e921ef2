import type { CodecManifest } from "../../../server/engine/generator/manifest.ts";
import { GraphWriter } from "../voices/onnx-writer.ts";
import { gaussian } from "../voices/random-voices.ts";

const codebook = 64;
const width = 4;
/** Steps of the finest codebook in a frame. */
const steps = 4;
const hop = 512;

/** A codec of random weights in the shape of SNAC at 24 kHz: three codebooks, seven slots a frame. */
export const tinyCodec: CodecManifest = {
  onnx: "decoder.onnx",
  rate: 24_000,
  frameSamples: steps * hop,
  base: 264,
  codebook,
  slots: [0, 1, 2, 2, 1, 2, 2],
  inputs: ["audio_codes.0", "audio_codes.1", "audio_codes.2"],
  output: "audio_values",
  left: 2,
  right: 2,
  hops: [1, 2, 4, 8],
};

/** Its decoder: what a frame sounds like depends on the frames beside it, as in a real one. 20 kB. */
export function tinyDecoder(): Buffer {
  const graph = new GraphWriter();
  const random = gaussian(17);
  const layers = tinyCodec.inputs.map((input, i) => {
    const rate = tinyCodec.slots.filter((slot) => slot === i).length;
    graph.input(input, "int64", ["batch", `codes${i}`]);
    const table = graph.floats(random(codebook * width, 0.5), [codebook, width]);
    const rows = graph.add("Transpose", [graph.add("Gather", [table, input])], { perm: [0, 2, 1] });
    return graph.add("Resize", [rows, "", graph.floats([1, 1, steps / rate], [3])]); // nearest
  });
  const sum = graph.add("Sum", layers);
  const mixing = graph.floats(random(width * width * 9, 0.25), [width, width, 9]);
  const mixed = graph.add("Tanh", [graph.add("Conv", [sum, mixing], { pads: [4, 4], kernel_shape: [9] })]);
  const kernel = graph.floats(random(width * 2 * hop, 0.1), [width, 1, 2 * hop]);
  const wave = graph.add("ConvTranspose", [mixed, kernel], {
    strides: [hop],
    pads: [hop / 2, hop / 2],
    kernel_shape: [2 * hop],
  });
  graph.add("Tanh", [wave], {}, "audio_values");
  graph.output("audio_values", "float", ["batch", 1, "samples"]);
  return graph.bytes("tiny codec");
}
