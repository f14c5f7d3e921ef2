import { InferenceSession, Tensor } from "onnxruntime-node";
import {
  exactBorders,
  Line,
  type ModelOutput,
  melodyMarks,
  type NeuralModel,
  neuralSpeedRange,
  type PhonemeWord,
  type SpeakingStyle,
  type SpelledLine,
  toSamples,
} from "./neural-model.ts";
import { type PiperSpec, sessionOptions } from "./onnx/model-spec.ts";
import { madeBy, readOutline, withOutput } from "./onnx/onnx-graph.ts";

/**
 * Runs Piper's VITS graph (github.com/OHF-Voice/piper1-gpl). The inputs are `input`, `input_lengths`,
 * `scales` and, for several speakers, `sid`. The output is `output`.
 */
export class PiperModel implements NeuralModel {
  readonly rate: number;
  readonly maxSymbols = Number.POSITIVE_INFINITY;
  readonly reach = neuralSpeedRange;
  readonly borders = exactBorders;
  readonly #spec: PiperSpec;
  readonly #session: InferenceSession;
  readonly #durations: string;

  private constructor(spec: PiperSpec, session: InferenceSession, durations: string) {
    this.rate = spec.rate;
    this.#spec = spec;
    this.#session = session;
    this.#durations = durations;
  }

  /**
   * Loads a model.
   * @throws Error if the graph is not Piper's.
   */
  static async load(spec: PiperSpec, file: Buffer): Promise<PiperModel> {
    const durations = durationsOf(file);
    const session = await InferenceSession.create(durations.model, sessionOptions(spec.runtime));
    const missing = ["input", "input_lengths", "scales", ...(spec.isMultiSpeaker ? ["sid"] : [])].filter(
      (name) => !session.inputNames.includes(name),
    );
    if (missing.length > 0)
      throw new Error(`the graph has no input "${missing.join('", "')}", which every Piper model has`);
    return new PiperModel(spec, session, durations.name);
  }

  spell(words: readonly PhonemeWord[]): SpelledLine {
    const line = new Line();
    const addSymbol = (symbol: string, token: number) => {
      const ids = this.#spec.ids[symbol];
      if (ids) line.add([...ids, ...this.#pad], token);
    };
    line.add([...this.#idsOf("^"), ...this.#pad], -1);
    for (const [index, { token, sounds, after }] of words.entries()) {
      if (index > 0) addSymbol(" ", -1);
      for (const symbol of sounds.join("").normalize("NFD")) addSymbol(symbol, token);
      for (const mark of melodyMarks(after)) addSymbol(mark, -1);
    }
    line.add(this.#idsOf("$"), -1);
    return line;
  }

  async speak({ ids }: SpelledLine, { speaker, stretch }: SpeakingStyle): Promise<ModelOutput> {
    const { noiseScale, lengthScale, noiseWidth, isMultiSpeaker } = this.#spec;
    const results = await this.#session.run({
      input: integers(ids, [1, ids.length]),
      input_lengths: integers([ids.length], [1]),
      scales: new Tensor("float32", Float32Array.of(noiseScale, lengthScale * stretch, noiseWidth), [3]),
      ...(isMultiSpeaker && { sid: integers([speaker], [1]) }),
    });
    const audio = results.output?.data;
    const durations = results[this.#durations]?.data;
    if (!(audio instanceof Float32Array)) throw new Error('the graph returned no output "output"');
    if (durations?.length !== ids.length)
      throw new Error("the graph did not return one duration for each phoneme");
    return { audio, samples: toSamples(Array.from(durations, Number), audio.length) };
  }

  get #pad(): readonly number[] {
    return this.#idsOf("_");
  }

  #idsOf(symbol: string): readonly number[] {
    return this.#spec.ids[symbol] ?? [];
  }
}

/**
 * Finds the durations of all phonemes, in frames. Some graphs return the durations as the output `w_ceil` or
 * `durations`. In other graphs, the durations are the result of the only Ceil operator. The function adds
 * this result as an output.
 */
function durationsOf(file: Buffer): { name: string; model: Buffer } {
  const outline = readOutline(file);
  const ceilings = madeBy(outline, "Ceil");
  const isDurations = (name: string) => name === "w_ceil" || name === "durations" || ceilings.includes(name);
  const output = outline.outputs.find(isDurations);
  if (output !== undefined) return { name: output, model: file };
  const [name, ...more] = ceilings;
  if (name === undefined || more.length > 0) {
    throw new Error(
      `the graph has ${ceilings.length} Ceil operators, and exactly one is required. Export the model with an output "w_ceil".`,
    );
  }
  return { name, model: withOutput(file, name) };
}

function integers(values: readonly number[], shape: readonly number[]): Tensor {
  return new Tensor("int64", BigInt64Array.from(values, BigInt), shape);
}
