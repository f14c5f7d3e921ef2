import { readFile } from "node:fs/promises";
import type { SpeedRange } from "../runtime/speed-range.ts";
import type { KokoroGraph, KokoroInputs } from "./kokoro-graphs.ts";
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
  type WindowedOutput,
} from "./neural-model.ts";
import type { KokoroSpec } from "./onnx/model-spec.ts";
import { interpolate, speechShareOf, type VoiceMeans } from "./voice-means.ts";

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

/** Runs a graph of Kokoro. */
export class KokoroModel implements NeuralModel {
  readonly rate: number;
  readonly maxSymbols = maxSymbols;
  readonly borders = kokoroBorders;
  readonly reach: SpeedRange;
  readonly #spec: KokoroSpec;
  readonly #graph: KokoroGraph;
  readonly #styles: readonly Float32Array[];
  /** The means of each speaker. The graph synthesizes other speakers without windows. */
  readonly #means: readonly (VoiceMeans | undefined)[];

  private constructor(
    spec: KokoroSpec,
    graph: KokoroGraph,
    styles: readonly Float32Array[],
    means: readonly (VoiceMeans | undefined)[],
  ) {
    this.rate = spec.rate;
    this.reach = graph.hasSpeed ? neuralSpeedRange : { least: 1, most: 1 };
    this.#spec = spec;
    this.#graph = graph;
    this.#styles = styles;
    this.#means = means;
  }

  /**
   * Loads the style tables of a model.
   * @param means the means of each speaker, for a graph that synthesizes in windows.
   * @throws Error if a style table is invalid.
   */
  static async load(
    spec: KokoroSpec,
    graph: KokoroGraph,
    means: readonly (VoiceMeans | undefined)[] = [],
  ): Promise<KokoroModel> {
    const styles = await Promise.all(spec.voices.map(({ style }) => readStyle(style)));
    return new KokoroModel(spec, graph, styles, means);
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

  /** Returns the inputs of the graph for a line. */
  inputsOf({ ids }: SpelledLine, { speaker, stretch }: SpeakingStyle): KokoroInputs {
    return { ids, style: this.#style(speaker, ids.length - 2), speed: 1 / stretch };
  }

  async speak(line: SpelledLine, style: SpeakingStyle): Promise<ModelOutput> {
    const { audio, durations } = await this.#graph.run(this.inputsOf(line, style));
    return { audio, samples: toSamples(durations, audio.length) };
  }

  async speakInWindows(line: SpelledLine, style: SpeakingStyle): Promise<WindowedOutput | undefined> {
    const means = this.#means[style.speaker];
    if (!means) return undefined;
    const begun = await this.#graph.begin?.(this.inputsOf(line, style), (durations) =>
      interpolate(means, speechShareOf(line, durations)),
    );
    return begun && { ...begun, samples: toSamples(begun.durations, begun.length) };
  }

  /** Frees the graph. */
  close(): Promise<void> {
    return this.#graph.close();
  }

  #style(speaker: number, symbols: number): Float32Array {
    const table = this.#styles[speaker];
    if (!table) throw new Error(`the model has no style table for speaker ${speaker}`);
    const row = Math.min(Math.max(0, symbols), table.length / styleSize - 1);
    return table.subarray(row * styleSize, (row + 1) * styleSize);
  }
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
