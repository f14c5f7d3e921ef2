import { InferenceSession, Tensor } from "onnxruntime-node";
import type { Sampling } from "../../contract/speech.ts";
import type { FrameCodes, Generation, Generator, PlannedPhone, Prompt } from "./code-generator.ts";
import type { CodecTables, ModelFiles } from "./model-files.ts";
import { type Phone, phoneFields } from "./phones.ts";
import { RecentCodes, Sampler } from "./sampler.ts";
import { StepGraph } from "./step-graph.ts";

/** One thread: streams run side by side in processes of their own, and a step is too small to share. */
const sessionOptions: InferenceSession.SessionOptions = {
  executionProviders: ["cpu"],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  graphOptimizationLevel: "all",
};
/** Frames of silence that the host leaves at both ends, as the model has learned it. */
const marginFrames = 3;
/** Sounds whose lengths and melodies count as spoken lately. */
const memory = 6;
/**
 * Of the temperature, for the codes: it is meant for how something is said. At the whole of it one frame in a few would belong to
 * another sound. The penalty leaves them alone too: a vowel is one code many times over.
 */
const codeTemperature = 0.4;

/** The model in this process: phone by phone a plan of lengths and melody, then frame by frame the codes. */
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

  async generate(prompt: Prompt, sampling: Sampling, random: () => number): Promise<Generation> {
    const told = await this.#encode(prompt);
    const plan = await this.#planned(prompt.phones, told.plan, new Sampler(sampling, random));
    const temperature = sampling.temperature * codeTemperature;
    const sampler = new Sampler({ ...sampling, temperature, repetitionPenalty: 1 }, random);
    return { plan, frames: this.#frames(plan, told.codes, sampler, sampling.maxTokens) };
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
    if (!plan || !codes) throw new Error("the encoder says nothing");
    return { plan: rowsOf(plan), codes: rowsOf(codes) };
  }

  async #planned(
    phones: readonly Phone[],
    told: readonly Tensor[],
    sampler: Sampler,
  ): Promise<PlannedPhone[]> {
    const { heads, rows } = this.#tables;
    const recent = heads.plan.map(() => new RecentCodes(memory));
    const planned: PlannedPhone[] = [];
    this.#plan.reset();
    let last: readonly number[] = heads.plan;
    for (const [place, context] of told.entries()) {
      const logits = await this.#plan.step(sums(last, rows.plan), context);
      const atEnd = place === 0 || place === phones.length - 1;
      const [length = 0, pitch = 0] = pickAll(logits, heads.plan, sampler, recent);
      const frames = atEnd ? marginFrames : length + 1;
      last = [frames - 1, pitch];
      planned.push({ frames, pitch });
    }
    return planned;
  }

  async *#frames(
    plan: readonly PlannedPhone[],
    told: readonly Tensor[],
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
        const logits = await this.#codes.step(sums([...last, ...place], rows.codes), told[phone] as Tensor);
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

function sums(codes: readonly number[], begins: readonly number[]): number[] {
  return codes.map((code, i) => code + (begins[i] ?? 0));
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
