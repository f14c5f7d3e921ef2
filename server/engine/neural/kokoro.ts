import { readFile } from "node:fs/promises";
import { InferenceSession, Tensor } from "onnxruntime-node";
import type { SpeedRange } from "../runtime/speed-range.ts";
import { kokoroSymbols, symbolsIn } from "./kokoro-phonemes.ts";
import {
  type Borders,
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
import { type KokoroSpec, sessionOptions } from "./onnx/model-spec.ts";
import { madeBy, readOutline, withOutput } from "./onnx/onnx-graph.ts";

/** The number of values in one row of a style table. The number of symbols of a line selects the row. */
const styleSize = 256;
/**
 * The highest number of symbols of a line. The model accepts 512 symbols, and the first and the last symbol
 * are padding.
 */
const maxSymbols = 510;
const padId = 0;
/**
 * A line with fewer symbols gets a full stop at its end. Without the full stop, the model omits half of a
 * very short line.
 */
const shortSymbols = 12;
/**
 * The correction for Kokoro. Words are audible 0.04 s before the borders of the model's durations, and end
 * 0.09 s before a pause (medians of 12 sentences and two voices). The model counts the silence after the last
 * word as part of the word.
 */
const kokoroBorders: Borders = { shiftSeconds: -0.06, byLevel: true };

/**
 * Runs Kokoro's graph. The inputs are `input_ids` (or `tokens`), `style` and `speed`. The output is
 * `waveform` (or `audio`). The durations are an output, or a value inside the graph.
 */
export class KokoroModel implements NeuralModel {
  readonly rate: number;
  readonly maxSymbols = maxSymbols;
  readonly borders = kokoroBorders;
  readonly reach: SpeedRange;
  readonly #spec: KokoroSpec;
  readonly #session: InferenceSession;
  readonly #styles: readonly Float32Array[];
  readonly #names: Names;

  private constructor(
    spec: KokoroSpec,
    session: InferenceSession,
    names: Names,
    styles: readonly Float32Array[],
  ) {
    this.rate = spec.rate;
    // An input `speed` of an integer type allows only speed 1.
    this.reach = names.speedType === "float32" ? neuralSpeedRange : { least: 1, most: 1 };
    this.#spec = spec;
    this.#session = session;
    this.#names = names;
    this.#styles = styles;
  }

  /**
   * Loads a model.
   * @throws Error if the graph is not Kokoro's, has no durations, or a style table is invalid.
   */
  static async load(spec: KokoroSpec, file: Buffer): Promise<KokoroModel> {
    const durations = durationsOf(file);
    const session = await InferenceSession.create(durations.model, sessionOptions(spec.runtime));
    const styles = await Promise.all(spec.voices.map(({ style }) => readStyle(style)));
    return new KokoroModel(spec, session, readNames(session, durations.name), styles);
  }

  spell(words: readonly PhonemeWord[], speaker: number): SpelledLine {
    const line = new Line();
    const addSymbol = (symbol: string, token: number) => {
      const id = this.#spec.ids[symbol];
      if (id !== undefined) line.add([id], token);
    };
    const espeak = this.#spec.voices[speaker]?.espeak ?? "";
    line.add([padId], -1);
    for (const [index, { token, sounds, after }] of words.entries()) {
      if (index > 0) addSymbol(" ", -1);
      const symbols = symbolsIn(this.#spec.ids, kokoroSymbols(sounds, espeak));
      for (const symbol of symbols) addSymbol(symbol, token);
      for (const mark of melodyMarks(after)) addSymbol(mark, -1);
    }
    const isOpen = melodyMarks(words.at(-1)?.after ?? "").length === 0;
    if (isOpen && line.ids.length < shortSymbols) addSymbol(".", -1);
    line.add([padId], -1);
    return line;
  }

  async speak({ ids }: SpelledLine, { speaker, stretch }: SpeakingStyle): Promise<ModelOutput> {
    const { input, speedType, audio, durations } = this.#names;
    const speed = 1 / stretch;
    const results = await this.#session.run({
      [input]: new Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]),
      style: new Tensor("float32", this.#style(speaker, ids.length - 2), [1, styleSize]),
      speed:
        speedType === "float32"
          ? new Tensor("float32", Float32Array.of(speed), [1])
          : new Tensor("int32", Int32Array.of(1), [1]),
    });
    const samples = results[audio]?.data;
    const frames = results[durations]?.data;
    if (!(samples instanceof Float32Array)) throw new Error(`the graph returned no output ${audio}`);
    if (frames?.length !== ids.length)
      throw new Error("the graph did not return one duration for each symbol");
    return { audio: samples, samples: toSamples(Array.from(frames, Number), samples.length) };
  }

  /** Frees the graph. */
  close(): Promise<void> {
    return this.#session.release();
  }

  #style(speaker: number, symbols: number): Float32Array {
    const table = this.#styles[speaker];
    if (!table) throw new Error(`the model has no style table for speaker ${speaker}`);
    const row = Math.min(Math.max(0, symbols), table.length / styleSize - 1);
    return table.subarray(row * styleSize, (row + 1) * styleSize);
  }
}

interface Names {
  readonly input: string;
  readonly speedType: "float32" | "int32";
  readonly audio: string;
  readonly durations: string;
}

function readNames(session: InferenceSession, durations: string): Names {
  const pick = (what: string, names: readonly string[], accepted: readonly string[]) => {
    const found = accepted.find((name) => names.includes(name));
    if (found === undefined) throw new Error(`the graph has no ${what} "${accepted.join('" or "')}"`);
    return found;
  };
  pick("input", session.inputNames, ["style"]);
  pick("input", session.inputNames, ["speed"]);
  const speed = session.inputMetadata.find(({ name }) => name === "speed");
  return {
    input: pick("input", session.inputNames, ["input_ids", "tokens"]),
    speedType: speed?.isTensor && speed.type === "int32" ? "int32" : "float32",
    audio: pick("output", session.outputNames, ["waveform", "audio"]),
    durations,
  };
}

/**
 * Finds the durations of all symbols, in frames. Some graphs return the durations as the output `durations`
 * or `pred_dur`. In other graphs, the durations are the only value that the graph rounds and clips to at
 * least one. The function adds this value as an output.
 */
function durationsOf(file: Buffer): { name: string; model: Buffer } {
  const outline = readOutline(file);
  const output = outline.outputs.find((name) => name === "durations" || name === "pred_dur");
  if (output !== undefined) return { name: output, model: file };
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
  return outline.outputs.includes(name) ? { name, model: file } : { name, model: withOutput(file, name) };
}

async function readStyle(path: string): Promise<Float32Array> {
  const bytes = await readFile(path);
  if (bytes.length === 0 || bytes.length % (styleSize * 4) !== 0) {
    throw new Error(
      `the style table ${path} has ${bytes.length} bytes; it must have rows of ${styleSize * 4} bytes`,
    );
  }
  return new Float32Array(new Uint8Array(bytes).buffer);
}
