import { join } from "node:path";
import { Decoder } from "../../../server/engine/generator/decoder.ts";
import { FrameReader } from "../../../server/engine/generator/frame-reader.ts";
import { tinyCodec } from "./tiny-codec.ts";

/** Samples, -1 to 1, of all frames of the tiny model's tokens, decoded in one go. */
export async function decodedAtOnce(folder: string, tokens: readonly number[]): Promise<Float32Array> {
  const decoder = await Decoder.load({
    file: join(folder, tinyCodec.onnx),
    codec: tinyCodec,
    providers: ["cpu"],
  });
  const [whole = new Float32Array()] = await decoder.decode([new FrameReader(tinyCodec).push(tokens)]);
  return whole;
}

/** The largest difference of what is heard, as a share of the loudness of the whole. */
export function seamError(whole: Float32Array, heard: Int16Array | Float32Array): number {
  const full = heard instanceof Int16Array ? 32_767 : 1;
  const loudness = Math.sqrt(whole.reduce((sum, value) => sum + value ** 2, 0) / whole.length);
  const errors = whole.map((value, i) => Math.abs(value - (heard[i] ?? 0) / full));
  return errors.reduce((most, error) => Math.max(most, error), 0) / loudness;
}
