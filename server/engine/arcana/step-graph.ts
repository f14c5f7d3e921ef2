import { InferenceSession, Tensor } from "onnxruntime-node";
import type { CodecTables } from "./model-files.ts";

const masked = -1e9;
const rotaryBase = 10_000;

/**
 * Runs a decoder's graph step by step. A ring buffer holds the state of its layers from the last steps, so
 * that every step has the same cost.
 */
export class StepGraph {
  readonly #session: InferenceSession;
  readonly #layers: number;
  readonly #attention: CodecTables["attention"];
  readonly #keys: Float32Array;
  readonly #values: Float32Array;
  readonly #mask: Float32Array;
  readonly #cos: Float32Array;
  readonly #sin: Float32Array;
  readonly #feeds: Record<string, Tensor>;
  #position = 0;

  private constructor(session: InferenceSession, layers: number, attention: CodecTables["attention"]) {
    this.#session = session;
    this.#layers = layers;
    this.#attention = attention;
    const { heads, size, window } = attention;
    const cache = [layers, heads, window - 1, size];
    const cacheSize = layers * heads * (window - 1) * size;
    this.#keys = new Float32Array(cacheSize);
    this.#values = new Float32Array(cacheSize);
    this.#mask = new Float32Array(window);
    this.#cos = new Float32Array(size / 2);
    this.#sin = new Float32Array(size / 2);
    this.#feeds = {
      keys: new Tensor("float32", this.#keys, cache),
      values: new Tensor("float32", this.#values, cache),
      mask: new Tensor("float32", this.#mask, [window]),
      cos: new Tensor("float32", this.#cos, [size / 2]),
      sin: new Tensor("float32", this.#sin, [size / 2]),
    };
  }

  static async load(
    file: Buffer,
    layers: number,
    attention: CodecTables["attention"],
    options: InferenceSession.SessionOptions,
  ): Promise<StepGraph> {
    return new StepGraph(await InferenceSession.create(file, options), layers, attention);
  }

  /** Clears the state. */
  reset(): void {
    this.#position = 0;
    this.#mask.fill(masked);
    this.#mask[this.#mask.length - 1] = 0; // A step always attends to its own state.
  }

  /**
   * Runs one step.
   * @param rows the rows of the graph's table whose sum is the input.
   * @returns the scores of all codes, head by head.
   */
  async step(rows: readonly number[], context: Tensor): Promise<Float32Array> {
    this.#setAngles();
    const { logits, key, value } = await this.#session.run({
      ...this.#feeds,
      rows: new Tensor("int64", BigInt64Array.from(rows, BigInt), [rows.length]),
      context,
    });
    this.#store(this.#keys, key?.data as Float32Array);
    this.#store(this.#values, value?.data as Float32Array);
    this.#mask[this.#slot()] = 0;
    this.#position++;
    return logits?.data as Float32Array;
  }

  #slot(): number {
    return this.#position % (this.#attention.window - 1);
  }

  /** Sets the angles of the rotary position embedding for this step. */
  #setAngles(): void {
    const { size } = this.#attention;
    for (let i = 0; i < size / 2; i++) {
      const angle = this.#position * rotaryBase ** ((-2 * i) / size);
      this.#cos[i] = Math.cos(angle);
      this.#sin[i] = Math.sin(angle);
    }
  }

  #store(ring: Float32Array, state: Float32Array): void {
    const { heads, size, window } = this.#attention;
    for (let head = 0; head < this.#layers * heads; head++) {
      ring.set(state.subarray(head * size, (head + 1) * size), (head * (window - 1) + this.#slot()) * size);
    }
  }
}
