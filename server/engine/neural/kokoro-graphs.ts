import { InferenceSession, Tensor } from "onnxruntime-node";
import { meanNames } from "./onnx/given-means.ts";
import { type RuntimeOptions, sessionOptions } from "./onnx/model-spec.ts";
import { madeBy, readOutline, withOutput } from "./onnx/onnx-graph.ts";
import { type AudioRange, frameSamples, type Window, windowsOf } from "./windows.ts";

/** The inputs of Kokoro for one line. */
export interface KokoroInputs {
  readonly ids: readonly number[];
  readonly style: Float32Array;
  readonly speed: number;
}

interface KokoroResult {
  /** Samples from -1 to 1. */
  readonly audio: Float32Array;
  /** The duration of each symbol, in frames of any length. */
  readonly durations: readonly number[];
}

/** A line that is synthesized in windows. */
interface KokoroWindows {
  readonly durations: readonly number[];
  /** The number of samples of the whole line. */
  readonly length: number;
  /** Synthesizes the windows that contain a range of samples. */
  audio(range: AudioRange): AsyncGenerator<KokoroPiece, void, void>;
}

/** The audio of one window. */
interface KokoroPiece {
  /** The position of the first sample in the line. */
  readonly at: number;
  readonly audio: Float32Array;
}

type MeansOf = (durations: readonly number[]) => Float32Array;

/** A graph of Kokoro, which is one file or is split into two files. */
export interface KokoroGraph {
  /** Whether the speed is an input of a floating-point type. Otherwise the graph has only one speed. */
  readonly hasSpeed: boolean;
  run(inputs: KokoroInputs): Promise<KokoroResult>;
  /**
   * Starts a line that is synthesized in windows. The function is absent if the graph is not split.
   * @param meansOf returns the means that replace the means of the line, for the durations of its symbols.
   */
  begin?(inputs: KokoroInputs, meansOf: MeansOf): Promise<KokoroWindows>;
  close(): Promise<void>;
}

const styleSize = 256;
type Runtime = Pick<RuntimeOptions, "providers" | "threads">;

/** Kokoro's graph in one file. The inputs are `input_ids` (or `tokens`), `style` and `speed`. */
export class WholeGraph implements KokoroGraph {
  readonly hasSpeed: boolean;
  readonly #session: InferenceSession;
  readonly #names: FrontNames;
  readonly #audio: string;

  private constructor(session: InferenceSession, durations: string) {
    this.#session = session;
    this.#names = frontNames(session, durations);
    this.#audio = pick("output", session.outputNames, ["waveform", "audio"]);
    this.hasSpeed = this.#names.speedType === "float32";
  }

  /**
   * Loads a graph, and frees the memory of `file`.
   * @throws Error if the graph is not Kokoro's or has no durations.
   */
  static async load(file: Buffer, runtime: Runtime): Promise<WholeGraph> {
    const { name, model } = durationsOf(file);
    if (model !== file) freeMemory(file);
    const session = await InferenceSession.create(model, sessionOptions(runtime));
    freeMemory(model);
    return new WholeGraph(session, name);
  }

  async run(inputs: KokoroInputs): Promise<KokoroResult> {
    const results = await this.#session.run(frontFeeds(this.#names, inputs));
    const audio = floatsOf(results, this.#audio).data;
    return { audio, durations: durationsIn(results, this.#names.durations, inputs) };
  }

  close(): Promise<void> {
    return this.#session.release();
  }
}

/** The names of the values between the two parts of a split graph. */
export const splitNames = {
  features: "features",
  source: "source",
  durations: "durations",
  audio: "waveform",
} as const;

/**
 * Kokoro's graph in two files. The front computes the features of the whole line. The generator turns a range
 * of features into audio.
 */
export class SplitGraph implements KokoroGraph {
  readonly hasSpeed: boolean;
  readonly #front: InferenceSession;
  readonly #generator: InferenceSession;
  readonly #names: FrontNames;
  readonly #noMeans: Tensor;

  private constructor(front: InferenceSession, generator: InferenceSession, channels: number) {
    this.#front = front;
    this.#generator = generator;
    this.#names = frontNames(front, splitNames.durations);
    this.hasSpeed = this.#names.speedType === "float32";
    this.#noMeans = meansTensor(new Float32Array(channels));
  }

  /**
   * Loads the two parts of a graph.
   * @param channels the number of channels of all means together.
   * @throws Error if a file is not a part of Kokoro's graph.
   */
  static async load(
    { front, generator }: { readonly front: string; readonly generator: string },
    channels: number,
    runtime: Runtime,
  ): Promise<SplitGraph> {
    const options = sessionOptions(runtime);
    const frontSession = await InferenceSession.create(front, options);
    try {
      return new SplitGraph(frontSession, await InferenceSession.create(generator, options), channels);
    } catch (error) {
      await frontSession.release();
      throw error;
    }
  }

  async run(inputs: KokoroInputs): Promise<KokoroResult> {
    const { audio, durations } = await this.runWithMeans(inputs);
    return { audio, durations };
  }

  /**
   * Synthesizes a whole line.
   * @param given the means that replace the means of the line.
   * @returns the means of the line too.
   */
  async runWithMeans(
    inputs: KokoroInputs,
    given?: Float32Array,
  ): Promise<KokoroResult & { readonly means: Float32Array }> {
    const { features, source, durations } = await this.#features(inputs);
    const means = given ? meansFeeds(meansTensor(given), 1) : meansFeeds(this.#noMeans, 0);
    const results = await this.#generator.run({ features, source, style: styleTensor(inputs), ...means });
    return {
      audio: floatsOf(results, splitNames.audio).data,
      durations,
      means: floatsOf(results, meanNames.own).data,
    };
  }

  async begin(inputs: KokoroInputs, meansOf: MeansOf): Promise<KokoroWindows> {
    const { features, source, durations } = await this.#features(inputs);
    const frames = features.dims[2] ?? 0;
    const fixed = { style: styleTensor(inputs), ...meansFeeds(meansTensor(meansOf(durations)), 1) };
    const generator = this.#generator;
    const synthesize = async ({ computedFrom, computedTo, from, to }: Window): Promise<KokoroPiece> => {
      const results = await generator.run(
        {
          ...fixed,
          [splitNames.features]: part(features, computedFrom, computedTo),
          [splitNames.source]: sourcePart(source, computedFrom, computedTo, frames),
        },
        [splitNames.audio],
      );
      const { data } = floatsOf(results, splitNames.audio);
      const expected = (computedTo - computedFrom) * frameSamples;
      if (data.length !== expected)
        throw new Error(`a window has ${data.length} samples instead of ${expected}`);
      const audio = data.subarray((from - computedFrom) * frameSamples, (to - computedFrom) * frameSamples);
      return { at: from * frameSamples, audio };
    };
    return {
      durations,
      length: frames * frameSamples,
      audio: async function* (range) {
        for (const window of windowsOf(range, frames)) yield await synthesize(window);
      },
    };
  }

  async close(): Promise<void> {
    await this.#front.release();
    await this.#generator.release();
  }

  async #features(inputs: KokoroInputs) {
    const results = await this.#front.run(frontFeeds(this.#names, inputs));
    return {
      features: floatsOf(results, splitNames.features),
      source: floatsOf(results, splitNames.source),
      durations: durationsIn(results, this.#names.durations, inputs),
    };
  }
}

interface FloatTensor extends Tensor {
  readonly data: Float32Array;
}

function floatsOf(results: InferenceSession.OnnxValueMapType, name: string): FloatTensor {
  const value = results[name];
  if (!(value instanceof Tensor) || !(value.data instanceof Float32Array))
    throw new Error(`the graph returned no output ${name}`);
  return value as FloatTensor;
}

function durationsIn(
  results: InferenceSession.OnnxValueMapType,
  name: string,
  { ids }: KokoroInputs,
): number[] {
  const frames = results[name]?.data;
  if (frames?.length !== ids.length) throw new Error("the graph did not return one duration for each symbol");
  return Array.from(frames as ArrayLike<number | bigint>, Number);
}

interface FrontNames {
  readonly input: string;
  readonly speedType: "float32" | "int32";
  readonly durations: string;
}

function frontNames({ inputNames, inputMetadata }: InferenceSession, durations: string): FrontNames {
  pick("input", inputNames, ["style"]);
  pick("input", inputNames, ["speed"]);
  const speed = inputMetadata.find(({ name }) => name === "speed");
  return {
    input: pick("input", inputNames, ["input_ids", "tokens"]),
    speedType: speed?.isTensor && speed.type === "int32" ? "int32" : "float32",
    durations,
  };
}

function pick(what: string, names: readonly string[], accepted: readonly string[]): string {
  const found = accepted.find((name) => names.includes(name));
  if (found === undefined) throw new Error(`the graph has no ${what} "${accepted.join('" or "')}"`);
  return found;
}

function frontFeeds({ input, speedType }: FrontNames, inputs: KokoroInputs): Record<string, Tensor> {
  const { ids, speed } = inputs;
  return {
    [input]: new Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]),
    style: styleTensor(inputs),
    speed:
      speedType === "float32"
        ? new Tensor("float32", Float32Array.of(speed), [1])
        : new Tensor("int32", Int32Array.of(1), [1]),
  };
}

function styleTensor({ style }: KokoroInputs): Tensor {
  return new Tensor("float32", style, [1, styleSize]);
}

function meansTensor(means: Float32Array): Tensor {
  return new Tensor("float32", means, [1, means.length, 1]);
}

function meansFeeds(means: Tensor, share: number): Record<string, Tensor> {
  return {
    [meanNames.given]: means,
    [meanNames.share]: new Tensor("float32", Float32Array.of(share), [1, 1, 1]),
  };
}

/** Returns a range of the last dimension of a tensor with the dimensions [1, channels, length]. */
function part({ data, dims }: FloatTensor, from: number, to: number): Tensor {
  const [, channels = 0, length = 0] = dims;
  const copy = new Float32Array(channels * (to - from));
  for (let channel = 0; channel < channels; channel++) {
    const at = channel * length;
    copy.set(data.subarray(at + from, at + to), channel * (to - from));
  }
  return new Tensor("float32", copy, [1, channels, to - from]);
}

/** Returns the range of the source that belongs to a range of frames. The source has one additional value. */
function sourcePart(source: FloatTensor, from: number, to: number, frames: number): Tensor {
  const perFrame = ((source.dims[2] ?? 0) - 1) / frames;
  return part(source, from * perFrame, to * perFrame + 1);
}

/**
 * Finds the durations of all symbols, in frames. Some graphs return the durations as the output `durations`
 * or `pred_dur`. In other graphs, the durations are the only value that the graph rounds and clips to at
 * least one. The function adds this value as an output.
 * @throws Error if the graph has no durations.
 */
function durationsOf(file: Buffer): { name: string; model: Buffer } {
  const { name, isOutput } = findDurations(file);
  return { name, model: isOutput ? file : withOutput(file, name) };
}

/**
 * Finds the durations of a graph.
 * @throws Error if the graph has no durations.
 */
export function findDurations(file: Buffer): { name: string; isOutput: boolean } {
  const outline = readOutline(file);
  const output = outline.outputs.find((name) => name === "durations" || name === "pred_dur");
  if (output !== undefined) return { name: output, isOutput: true };
  const rounded = new Set(madeBy(outline, "Round"));
  const clipped = outline.nodes.filter(({ operator, inputs }) => {
    return operator === "Clip" && rounded.has(inputs[0] ?? "");
  });
  const [name, ...more] = clipped.flatMap(({ outputs }) => outputs);
  if (name === undefined || more.length > 0) {
    throw new Error(
      `word timestamps need the durations of the symbols. The graph has ${clipped.length} rounded and clipped values, and exactly one is required. Export the model with an output "durations".`,
    );
  }
  return { name, isOutput: outline.outputs.includes(name) };
}

/**
 * Frees the memory of a large buffer at once. The garbage collector would free the memory only when the heap
 * grows.
 */
function freeMemory({ buffer, length }: Buffer): void {
  // A small buffer shares its memory with other buffers.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}
