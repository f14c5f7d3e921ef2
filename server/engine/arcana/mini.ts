import { InferenceSession, Tensor } from "onnxruntime-node";
import type { Sampling } from "../../contract/speech.ts";
import type { FrameCodes, Generation, Generator, PlannedPhone, Prompt } from "./code-generator.ts";
import type { CodecTables, ModelFiles } from "./model-files.ts";
import { type Phone, phoneFields } from "./phones.ts";
import { RecentCodes, Sampler } from "./sampler.ts";
import { StepGraph } from "./step-graph.ts";

/**
 * The options of ONNX Runtime. One thread is enough: streams run in parallel in separate processes, and a
 * step is too small to be divided.
 */
const sessionOptions: InferenceSession.SessionOptions = {
  executionProviders: ["cpu"],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  graphOptimizationLevel: "all",
};
/** The number of frames of silence at both ends, as in the model's training data. */
const marginFrames = 3;
/** The number of recent sounds whose lengths and melodies the repetition penalty considers. */
const memory = 6;
/**
 * The share of the temperature that applies to codes. The temperature is meant for prosody: with the full
 * temperature, many frames would belong to another sound. The repetition penalty does not apply to codes,
 * because a vowel repeats one code many times.
 */
const codeTemperature = 0.4;

/**
 * Runs the model in this process. The model first plans the length and the melody of each phone, and then
 * writes the codes frame by frame.
 */
export class MiniGenerator implements Generator {
  readonly #tables: CodecTables;
  readonly #encoder: InferenceSession;
  readonly #plan: StepGraph;
  readonly #codes: StepGraph;

  private constructor(tables: CodecTables, encoder: InferenceSession, plan: StepGraph, codes: StepGraph) {
    this.#tables = tables;
    this.#encoder = encoder;
    this.#plan = plan;
    this.#codes = codes;
  }

  static async load({ codec, graphs }: ModelFiles): Promise<MiniGenerator> {
    const step = (name: "plan" | "codes") =>
      StepGraph.load(graphs[name], codec.layers[name], codec.attention, sessionOptions);
    return new MiniGenerator(
      codec,
      await InferenceSession.create(graphs.encoder, sessionOptions),
      await step("plan"),
      await step("codes"),
    );
  }

  async generate(
    prompt: Prompt,
    sampling: Sampling,
    random: () => number,
    isStopped: () => boolean,
  ): Promise<Generation> {
    const contexts = await this.#encode(prompt);
    const planSampler = new Sampler(sampling, random);
    const plan = await this.#planPhones(prompt.phones, contexts.plan, planSampler, isStopped);
    const temperature = sampling.temperature * codeTemperature;
    const sampler = new Sampler({ ...sampling, temperature, repetitionPenalty: 1 }, random);
    return { plan, frames: this.#frames(plan, contexts.codes, sampler, sampling.maxTokens) };
  }

  async #encode({ phones, speaker }: Prompt) {
    const { encoder } = this.#tables.rows;
    const rows = phones.flatMap((phone) =>
      [...phoneFields(phone), speaker].map((value, i) => value + (encoder[i] ?? 0)),
    );
    const shape = [phones.length, encoder.length];
    const { plan, codes } = await this.#encoder.run({
      phones: new Tensor("int64", BigInt64Array.from(rows, BigInt), shape),
    });
    if (!plan || !codes) throw new Error("the encoder returned no output");
    return { plan: rowsOf(plan), codes: rowsOf(codes) };
  }

  async #planPhones(
    phones: readonly Phone[],
    contexts: readonly Tensor[],
    sampler: Sampler,
    isStopped: () => boolean,
  ): Promise<PlannedPhone[]> {
    const { heads, rows } = this.#tables;
    const recent = heads.plan.map(() => new RecentCodes(memory));
    const planned: PlannedPhone[] = [];
    this.#plan.reset();
    let last: readonly number[] = heads.plan;
    for (const [index, context] of contexts.entries()) {
      if (isStopped()) break;
      const logits = await this.#plan.step(tableRows(last, rows.plan), context);
      const isAtEnd = index === 0 || index === phones.length - 1;
      const [length = 0, pitch = 0] = pickAll(logits, heads.plan, sampler, recent);
      const frames = isAtEnd ? marginFrames : length + 1;
      last = [frames - 1, pitch];
      planned.push({ frames, pitch });
    }
    return planned;
  }

  async *#frames(
    plan: readonly PlannedPhone[],
    contexts: readonly Tensor[],
    sampler: Sampler,
    maxTokens: number,
  ): AsyncGenerator<FrameCodes, void, void> {
    const { heads, rows, places } = this.#tables;
    this.#codes.reset();
    let last: FrameCodes = heads.codes;
    let written = 0;
    for (const [phone, { frames, pitch }] of plan.entries()) {
      for (let at = 0; at < frames; at++) {
        if (written++ >= maxTokens) return;
        const place = [Math.min(at, places - 1), Math.min(frames - 1 - at, places - 1), pitch];
        const logits = await this.#codes.step(
          tableRows([...last, ...place], rows.codes),
          contexts[phone] as Tensor,
        );
        last = pickAll(logits, heads.codes, sampler);
        yield last;
      }
    }
  }
}

function rowsOf(matrix: Tensor): Tensor[] {
  const [count = 0, width = 0] = matrix.dims;
  const data = matrix.data as Float32Array;
  return Array.from({ length: count }, (_, i) => {
    return new Tensor("float32", data.slice(i * width, (i + 1) * width), [1, width]);
  });
}

function tableRows(codes: readonly number[], firstRows: readonly number[]): number[] {
  return codes.map((code, i) => code + (firstRows[i] ?? 0));
}

function pickAll(
  logits: Float32Array,
  sizes: readonly number[],
  sampler: Sampler,
  recent: readonly RecentCodes[] = [],
): number[] {
  let at = 0;
  return sizes.map((size, i) => {
    const scores = logits.subarray(at, at + size);
    at += size;
    const code = sampler.pick(scores, recent[i]?.distinct() ?? new Set());
    recent[i]?.add(code);
    return code;
  });
}
