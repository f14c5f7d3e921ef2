/**
 * Generates models with random weights that have the inputs and outputs of Piper and Kokoro. Their audio is
 * noise with the durations of the phonemes. Tests use the tiny models. Measurements use the large model,
 * which has the size and the layers of a Piper voice.
 */
import { GraphWriter } from "./onnx-writer.ts";

/** The number of symbols in the usual phoneme map of Piper. */
const piperSymbols = 256;
const piperHop = 256;
const kokoroHop = 600;

export interface PiperChoice {
  readonly seed?: number;
  /** The durations of the shortest and the longest phoneme in frames. */
  readonly frames?: readonly [number, number];
  readonly speakers?: number;
  /** The ids of silent symbols, with their durations in frames. */
  readonly silent?: Readonly<Record<number, number>>;
  /** Whether the durations are an output, as in exports with alignments. */
  readonly alignments?: boolean;
}

/** Returns a tiny Piper model of 50 kB. */
export function tinyPiper(choice: PiperChoice = {}): Buffer {
  const graph = new GraphWriter();
  const random = gaussian(choice.seed ?? 7);
  const channels = 16;
  const durations = piperDurations(graph, choice, random);
  const table = random(piperSymbols * channels, 0.5);
  for (const id of Object.keys(choice.silent ?? {})) {
    table.fill(0, Number(id) * channels, (Number(id) + 1) * channels);
  }
  const phonemes = graph.add("Gather", [graph.floats(table, [piperSymbols, channels]), "input"]);
  const frames = upsample(graph, phonemes, durations);
  const noisy = addNoise(graph, frames);
  const speaker =
    choice.speakers === undefined ? noisy : addSpeaker(graph, noisy, choice.speakers, channels, random);
  const kernel = graph.floats(window(random(channels * 512, 0.2), 512), [channels, 1, 512]);
  const wave = graph.add("ConvTranspose", [speaker, kernel], { strides: [piperHop], pads: [128, 128] });
  finishPiper(graph, wave);
  return graph.bytes("tiny piper");
}

/**
 * Returns a Piper model of about 20 million parameters. Encoder, flow and decoder have the sizes of medium
 * quality.
 */
export function largePiper(): Buffer {
  const graph = new GraphWriter();
  const random = gaussian(11);
  const layers = new Layers(graph, random);
  const width = 192;
  const durations = piperDurations(graph, { frames: [2, 6] }, random);
  const embedded = graph.add("Gather", [
    graph.floats(random(piperSymbols * width, 1), [piperSymbols, width]),
    "input",
  ]);
  let text = graph.add("Transpose", [embedded], { perm: [0, 2, 1] });
  for (let layer = 0; layer < 6; layer++) text = layers.feedForward(text, width, 768);
  const back = graph.add("Transpose", [text], { perm: [0, 2, 1] });
  let latent = addNoise(graph, upsample(graph, back, durations));
  for (let layer = 0; layer < 32; layer++) latent = layers.gated(latent, width);
  const loudness = graph.floats([25], [1]);
  finishPiper(graph, graph.add("Mul", [layers.decoder(latent, width), loudness]));
  return graph.bytes("large piper");
}

function piperDurations(
  graph: GraphWriter,
  { frames = [2, 9], alignments, silent = {} }: PiperChoice,
  random: Random,
): string {
  graph.input("input", "int64", ["batch_size", "phonemes"]);
  graph.input("input_lengths", "int64", ["batch_size"]);
  graph.input("scales", "float", [3]);
  const [least, most] = frames;
  const table = random.uniform(piperSymbols, least, most);
  for (const [id, count] of Object.entries(silent)) table[Number(id)] = count;
  const raw = graph.add("Gather", [graph.floats(table, [piperSymbols]), "input"]);
  const scale = graph.add("Gather", ["scales", graph.integers([1], [1])]);
  const scaled = graph.add("Unsqueeze", [graph.add("Mul", [raw, scale]), graph.integers([1], [1])]);
  const name = alignments ? "w_ceil" : "/dp/Ceil_output_0";
  graph.add("Ceil", [scaled], {}, name);
  if (alignments) graph.output(name, "float", ["batch_size", 1, "phonemes"]);
  return graph.add("Squeeze", [name, graph.integers([0, 1], [2])]);
}

/** Repeats each phoneme for its duration, which turns the shape [1, T, C] into [1, C, F]. */
function upsample(graph: GraphWriter, phonemes: string, durations: string): string {
  const zero = graph.integers([0], []);
  const one = graph.integers([1], []);
  const ends = graph.add("CumSum", [durations, zero]);
  const total = graph.add("Cast", [graph.add("ReduceSum", [durations], { keepdims: 0 })], { to: 7 });
  const frames = graph.add("Cast", [graph.add("Range", [zero, total, one])], { to: 1 });
  const passed = graph.add("LessOrEqual", [
    graph.add("Unsqueeze", [ends, graph.integers([0], [1])]),
    graph.add("Unsqueeze", [frames, graph.integers([1], [1])]),
  ]);
  const index = graph.add("ReduceSum", [graph.add("Cast", [passed], { to: 7 }), graph.integers([1], [1])], {
    keepdims: 0,
  });
  return graph.add("Transpose", [graph.add("Gather", [phonemes, index], { axis: 1 })], { perm: [0, 2, 1] });
}

function addNoise(graph: GraphWriter, frames: string): string {
  const noise = graph.add("RandomNormalLike", [frames], { dtype: 1 });
  const scale = graph.add("Gather", ["scales", graph.integers([0], [1])]);
  return graph.add("Add", [frames, graph.add("Mul", [noise, scale])]);
}

function addSpeaker(
  graph: GraphWriter,
  frames: string,
  speakers: number,
  channels: number,
  random: Random,
): string {
  graph.input("sid", "int64", ["batch_size"]);
  const table = graph.floats(random(speakers * channels, 1), [speakers, channels]);
  const vector = graph.add("Unsqueeze", [graph.add("Gather", [table, "sid"]), graph.integers([2], [1])]);
  return graph.add("Add", [frames, vector]);
}

function finishPiper(graph: GraphWriter, wave: string): void {
  graph.add("Unsqueeze", [graph.add("Tanh", [wave]), graph.integers([1], [1])], {}, "output");
  graph.output("output", "float", ["batch_size", 1, 1, "time"]);
}

export interface KokoroChoice {
  /**
   * The place of the durations in the graph. `output` is an output, as in exports with timestamps. `inside`
   * is a rounded and clipped inner value, as in the usual exports. `hidden` is an inner value with another
   * operator.
   */
  readonly durations?: "output" | "inside" | "hidden";
  /** The type of the input `speed`. Some exports accept only an integer. */
  readonly speed?: "float" | "int32";
  /** Whether a layer uses 8-bit integers. */
  readonly isQuantized?: boolean;
}

/** Returns a Kokoro model with 178 symbols at 24 kHz. It has 20 kB. */
export function tinyKokoro({
  durations = "output",
  speed = "float",
  isQuantized = false,
}: KokoroChoice = {}): Buffer {
  const graph = new GraphWriter();
  const random = gaussian(13);
  const symbols = 178;
  const channels = isQuantized ? 64 : 8;
  graph.input("input_ids", "int64", [1, "t"]);
  graph.input("style", "float", [1, 256]);
  graph.input("speed", speed, [1]);
  const raw = graph.add("Gather", [graph.floats(random.uniform(symbols, 2, 6), [symbols]), "input_ids"]);
  const scaled = graph.add("Div", [
    raw,
    speed === "float" ? "speed" : graph.add("Cast", ["speed"], { to: 1 }),
  ]);
  const frames =
    durations === "inside"
      ? graph.add("Clip", [graph.add("Round", [scaled]), graph.floats([1], [])])
      : graph.add("Ceil", [scaled]);
  const flat = graph.add("Squeeze", [frames, graph.integers([0], [1])]);
  const roundedDurations = graph.add("Cast", [flat], { to: 7 });
  if (durations === "output") graph.add("Identity", [roundedDurations], {}, "durations");
  const embedded = graph.add("Gather", [
    graph.floats(random(symbols * channels, 0.5), [symbols, channels]),
    "input_ids",
  ]);
  const style = graph.add("MatMul", ["style", graph.floats(random(256 * channels, 0.1), [256, channels])]);
  const styled = graph.add("Add", [
    upsample(graph, embedded, flat),
    graph.add("Unsqueeze", [style, graph.integers([2], [1])]),
  ]);
  const kernel = graph.floats(window(random(channels * 1200, 0.2), 1200), [channels, 1, 1200]);
  const sounding = isQuantized ? quantizedLayer(graph, styled, channels) : styled;
  const wave = graph.add("ConvTranspose", [sounding, kernel], { strides: [kokoroHop], pads: [300, 300] });
  graph.add("Squeeze", [graph.add("Tanh", [wave]), graph.integers([1], [1])], {}, "waveform");
  graph.output("waveform", "float", [1, "n"]);
  if (durations === "output") graph.output("durations", "int64", ["t"]);
  return graph.bytes("tiny kokoro");
}

/** Adds a convolution in the form that dynamic quantization of ONNX Runtime writes. */
function quantizedLayer(graph: GraphWriter, x: string, channels: number): string {
  const [bytes = "", scale = "", zero = ""] = graph.addSeveral("DynamicQuantizeLinear", [x], 3);
  const taps = 3;
  const count = channels * channels * taps;
  const weights = graph.unsignedBytes(
    Uint8Array.from({ length: count }, (_, i) => 128 + (((i * 31) % 7) - 3)),
    [channels, channels, taps],
  );
  const weightsZero = graph.unsignedBytes(Uint8Array.of(128), []);
  const sums = graph.add("ConvInteger", [bytes, weights, zero, weightsZero], {
    kernel_shape: [taps],
    pads: [1, 1],
  });
  const scaled = graph.add("Mul", [graph.add("Cast", [sums], { to: 1 }), scale]);
  return graph.add("Mul", [scaled, graph.floats([0.05], [])]);
}

/** Returns the content of a style file, which has rows of 256 numbers. */
export function kokoroStyle(seed: number, rows = 510): Buffer {
  const table = gaussian(seed)(rows * 256, 0.3);
  return Buffer.from(table.buffer, table.byteOffset, table.byteLength);
}

/** Adds layers to a graph. Their weights preserve the magnitude of the signal. */
class Layers {
  readonly #graph: GraphWriter;
  readonly #random: Random;

  constructor(graph: GraphWriter, random: Random) {
    this.#graph = graph;
    this.#random = random;
  }

  conv(
    x: string,
    [from, to, kernel, dilation = 1]:
      | (readonly number[] & { length: 3 | 4 })
      | readonly [number, number, number, number?],
  ): string {
    const [inputs = 1, outputs = 1, taps = 1] = [from, to, kernel];
    const weights = this.#graph.floats(this.#random(outputs * inputs * taps, 1 / Math.sqrt(inputs * taps)), [
      outputs,
      inputs,
      taps,
    ]);
    const pad = ((taps - 1) * dilation) / 2;
    return this.#graph.add("Conv", [x, weights], {
      pads: [pad, pad],
      dilations: [dilation],
      kernel_shape: [taps],
    });
  }

  feedForward(x: string, width: number, inner: number): string {
    const hidden = this.#graph.add("Relu", [this.conv(x, [width, inner, 3])]);
    return this.#mean(x, this.conv(hidden, [inner, width, 3]));
  }

  /** Adds a WaveNet layer, as in the flow of VITS. */
  gated(x: string, width: number): string {
    const graph = this.#graph;
    const halves = [this.conv(x, [width, width, 5]), this.conv(x, [width, width, 5])];
    const gate = graph.add("Mul", [
      graph.add("Tanh", [halves[0] ?? x]),
      graph.add("Sigmoid", [halves[1] ?? x]),
    ]);
    return this.#mean(x, this.conv(gate, [width, width, 1]));
  }

  /** Adds a HiFi-GAN decoder with 256 channels, which upsamples by 8, 8 and 4. */
  decoder(latent: string, width: number): string {
    let x = this.conv(latent, [width, 256, 7]);
    let channels = 256;
    for (const [stride, kernel] of [
      [8, 16],
      [8, 16],
      [4, 8],
    ] as const) {
      x = this.#up(this.#leaky(x), channels, stride, kernel);
      channels /= 2;
      const blocks = [3, 5, 7].map((taps) => this.#residual(x, channels, taps));
      x = this.#mean(this.#mean(blocks[0] ?? x, blocks[1] ?? x), blocks[2] ?? x);
    }
    return this.conv(this.#leaky(x), [channels, 1, 7]);
  }

  #up(x: string, channels: number, stride: number, kernel: number): string {
    const outputs = channels / 2;
    const scale = 1 / Math.sqrt((channels * kernel) / stride);
    const weights = this.#graph.floats(this.#random(channels * outputs * kernel, scale), [
      channels,
      outputs,
      kernel,
    ]);
    const pad = (kernel - stride) / 2;
    return this.#graph.add("ConvTranspose", [x, weights], {
      strides: [stride],
      pads: [pad, pad],
      kernel_shape: [kernel],
    });
  }

  #residual(x: string, channels: number, taps: number): string {
    const inner = this.conv(this.#leaky(x), [channels, channels, taps, 1]);
    return this.#mean(x, this.conv(this.#leaky(inner), [channels, channels, taps, 3]));
  }

  #leaky(x: string): string {
    return this.#graph.add("LeakyRelu", [x], { alpha: 0.1 });
  }

  #mean(a: string, b: string): string {
    return this.#graph.add("Mul", [this.#graph.add("Add", [a, b]), this.#graph.floats([0.7], [1])]);
  }
}

interface Random {
  /** Returns normally distributed numbers with this standard deviation. */
  (count: number, deviation: number): Float32Array;
  uniform(count: number, from: number, to: number): Float32Array;
}

/** Returns a generator of random numbers, based on mulberry32. The same seed gives the same numbers. */
export function gaussian(seed: number): Random {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = (deviation: number) =>
    deviation * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const random = (count: number, deviation: number) =>
    Float32Array.from({ length: count }, () => normal(deviation));
  return Object.assign(random, {
    uniform: (count: number, from: number, to: number) =>
      Float32Array.from({ length: count }, () => from + (to - from) * next()),
  });
}

/** Multiplies each kernel by a Hann window. */
function window(values: Float32Array, length: number): Float32Array {
  return values.map(
    (value, i) => value * (0.5 - 0.5 * Math.cos((2 * Math.PI * ((i % length) + 0.5)) / length)),
  );
}
