import { readFile } from "node:fs/promises";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { type KokoroSpec, sessionOptions } from "./model-spec.ts";
import {
  Line,
  type Manner,
  melodyMarks,
  type NeuralModel,
  type SpelledLine,
  type Spoken,
  type SpokenWord,
  toSamples,
} from "./neural-model.ts";

/** Numbers in one row of a style file; the row is chosen by the number of symbols. */
const styleSize = 256;
/** Of the 512 that the model takes, the first and the last are pads. */
const maxSymbols = 510;
const padId = 0;

/** Kokoro: `input_ids` (or `tokens`), `style` and `speed` in, `waveform` (or `audio`) and `durations` out. */
export class KokoroModel implements NeuralModel {
  readonly rate: number;
  readonly maxSymbols = maxSymbols;
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
    this.#spec = spec;
    this.#session = session;
    this.#names = names;
    this.#styles = styles;
  }

  /** @throws Error when the graph is not Kokoro's, gives no durations, or a style file is none. */
  static async load(spec: KokoroSpec, file: Buffer): Promise<KokoroModel> {
    const session = await InferenceSession.create(file, sessionOptions(spec.runtime));
    const styles = await Promise.all(spec.styles.map(readStyle));
    return new KokoroModel(spec, session, readNames(session), styles);
  }

  spell(words: readonly SpokenWord[]): SpelledLine {
    const line = new Line();
    const put = (symbol: string, token: number) => {
      const id = this.#spec.ids[symbol];
      if (id !== undefined) line.add([id], token);
    };
    line.add([padId], -1);
    for (const [place, { token, sounds, after }] of words.entries()) {
      if (place > 0) put(" ", -1);
      for (const sound of sounds) for (const symbol of this.#symbols(sound)) put(symbol, token);
      for (const mark of melodyMarks(after)) put(mark, -1);
    }
    line.add([padId], -1);
    return line;
  }

  async speak({ ids }: SpelledLine, { speaker, stretch }: Manner): Promise<Spoken> {
    const { input, speedType, audio, durations } = this.#names;
    const speed = 1 / stretch;
    const results = await this.#session.run({
      [input]: new Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]),
      style: new Tensor("float32", this.#style(speaker, ids.length - 2), [1, styleSize]),
      speed:
        speedType === "float32"
          ? new Tensor("float32", Float32Array.of(speed), [1])
          : new Tensor("int32", Int32Array.of(Math.max(1, Math.round(speed))), [1]),
    });
    const samples = results[audio]?.data;
    const frames = results[durations]?.data;
    if (!(samples instanceof Float32Array)) throw new Error(`the graph gives no ${audio}`);
    if (frames?.length !== ids.length) throw new Error("the graph gives no duration for each symbol");
    return { audio: samples, samples: toSamples(Array.from(frames, Number), samples.length) };
  }

  /** A sound that the vocabulary has as one symbol, or else its parts. */
  #symbols(sound: string): string[] {
    const [, stress = "", rest = sound] = /^([ˈˌ]?)(.*)$/u.exec(sound) ?? [];
    const own = this.#spec.ids[oneSymbol[rest] ?? rest] === undefined ? rest : (oneSymbol[rest] ?? rest);
    return [...stress, ...own];
  }

  #style(speaker: number, symbols: number): Float32Array {
    const table = this.#styles[speaker];
    if (!table) throw new Error(`there is no style ${speaker}`);
    const row = Math.min(Math.max(0, symbols), table.length / styleSize - 1);
    return table.subarray(row * styleSize, (row + 1) * styleSize);
  }
}

/** Sounds for which Kokoro was trained on one symbol of its own (hexgrad/misaki, EN_PHONES.md). */
const oneSymbol: Readonly<Record<string, string>> = {
  eɪ: "A",
  aɪ: "I",
  aʊ: "W",
  ɔɪ: "Y",
  oʊ: "O",
  əʊ: "Q",
  dʒ: "ʤ",
  tʃ: "ʧ",
};

interface Names {
  readonly input: string;
  readonly speedType: "float32" | "int32";
  readonly audio: string;
  readonly durations: string;
}

function readNames(session: InferenceSession): Names {
  const pick = (what: string, names: readonly string[], wanted: readonly string[]) => {
    const found = wanted.find((name) => names.includes(name));
    if (found === undefined) throw new Error(`the graph has no ${what} ${wanted.join(" or ")}`);
    return found;
  };
  pick("input", session.inputNames, ["style"]);
  pick("input", session.inputNames, ["speed"]);
  const speed = session.inputMetadata.find(({ name }) => name === "speed");
  return {
    input: pick("input", session.inputNames, ["input_ids", "tokens"]),
    speedType: speed?.isTensor && speed.type === "int32" ? "int32" : "float32",
    audio: pick("output", session.outputNames, ["waveform", "audio"]),
    durations: pick("output (word times need it: use an export with timestamps)", session.outputNames, [
      "durations",
      "pred_dur",
    ]),
  };
}

async function readStyle(path: string): Promise<Float32Array> {
  const bytes = await readFile(path);
  if (bytes.length === 0 || bytes.length % (styleSize * 4) !== 0) {
    throw new Error(
      `${path} is no style table: its ${bytes.length} bytes are no rows of ${styleSize} numbers`,
    );
  }
  return new Float32Array(new Uint8Array(bytes).buffer);
}
