import { InferenceSession, Tensor } from "onnxruntime-node";
import { sessionOptions } from "../../neural/onnx/model-spec.ts";
import type { CodecManifest } from "../model/manifest-schema.ts";
import type { CodecSpec } from "./codec-job.ts";
import type { CodecFrame } from "./frame-reader.ts";

/**
 * Runs a codec's decoder. Each codebook has one input, a tensor of codes. The output has the shape [batch, 1,
 * samples].
 */
export class Decoder {
  readonly #session: InferenceSession;
  readonly #codec: CodecManifest;

  private constructor(session: InferenceSession, codec: CodecManifest) {
    this.#session = session;
    this.#codec = codec;
  }

  /**
   * Loads a decoder and decodes a short silence.
   * @throws Error if the graph does not match the manifest.
   */
  static async load({ file, codec, providers }: CodecSpec): Promise<Decoder> {
    const session = await InferenceSession.create(file, sessionOptions({ providers, threads: 1 }));
    const missing = codec.inputs.find((name) => !session.inputNames.includes(name));
    if (missing !== undefined)
      throw new Error(`the graph has no input "${missing}", which the manifest names in /codec/inputs`);
    if (!session.outputNames.includes(codec.output))
      throw new Error(`the graph has no output "${codec.output}", which the manifest names in /codec/output`);
    const decoder = new Decoder(session, codec);
    const silence = Array.from({ length: 3 }, () => new Array<number>(codec.slots.length).fill(0));
    await decoder.decode([silence]);
    return decoder;
  }

  /**
   * Decodes windows together.
   * @param windows the windows, which must have the same number of frames.
   * @returns the samples of each window, from -1 to 1.
   */
  async decode(windows: readonly (readonly CodecFrame[])[]): Promise<Float32Array[]> {
    const { inputs, output, frameSamples } = this.#codec;
    const feeds = inputs.map((name, input) => [name, this.#codes(windows, input)] as const);
    const results = await this.#session.run(Object.fromEntries(feeds), [output]);
    const audio = results[output]?.data;
    const samples = (windows[0]?.length ?? 0) * frameSamples;
    if (!(audio instanceof Float32Array)) throw new Error(`the output "${output}" is not float32`);
    if (audio.length !== windows.length * samples) {
      throw new Error(
        `the output "${output}" has ${audio.length} samples; expected ${windows.length * samples}`,
      );
    }
    return windows.map((_, i) => audio.slice(i * samples, (i + 1) * samples));
  }

  #codes(windows: readonly (readonly CodecFrame[])[], input: number): Tensor {
    const slots = this.#codec.slots.flatMap((slotInput, slot) => (slotInput === input ? [slot] : []));
    const length = (windows[0]?.length ?? 0) * slots.length;
    const codes = new BigInt64Array(windows.length * length);
    let at = 0;
    for (const window of windows) {
      for (const frame of window) for (const slot of slots) codes[at++] = BigInt(frame[slot] ?? 0);
    }
    return new Tensor("int64", codes, [windows.length, length]);
  }
}
