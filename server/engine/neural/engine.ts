import { fileURLToPath } from "node:url";
import type { EngineFrame, Sounds, Token, Utterance } from "../../contract/speech.ts";
import type { Engine, EngineOptions } from "../runtime/engine.ts";
import { ProcessPool } from "../runtime/process-pool.ts";
import type { NeuralModelSpec } from "./onnx/model-spec.ts";

const file = fileURLToPath(new URL("main.ts", import.meta.url));

/**
 * Limits for a large model on a busy machine: loading takes seconds, and a long phrase up to twice its
 * duration.
 */
const startLimitMs = 120_000;
const silenceLimitMs = 120_000;

/** How a voice's text becomes sounds: read by an eSpeak NG voice, or letter by letter. */
export type TextReading =
  | { readonly kind: "espeak"; readonly voice: string }
  | { readonly kind: "characters" };

/** eSpeak NG's processes, which only read here. The license requires them to be separate. */
export type Reader = Pick<ProcessPool, "read">;

/**
 * One mounted model in its own processes. A pool of eSpeak NG processes reads for it.
 * @param readings of each speaker, by index; the last one applies to higher indexes.
 * @throws EngineMissing with the reason if the model cannot be loaded or makes no audio.
 */
export class NeuralEngine implements Engine {
  readonly #pool: ProcessPool;
  readonly #reader: Reader | undefined;
  readonly #readings: readonly TextReading[];

  private constructor(pool: ProcessPool, reader: Reader | undefined, readings: readonly TextReading[]) {
    this.#pool = pool;
    this.#reader = reader;
    this.#readings = readings;
  }

  /**
   * @param readings of each speaker, by number; the last holds for those above.
   * @throws EngineMissing when the model cannot be loaded or does not speak; the message says why.
   */
  static async open(
    spec: NeuralModelSpec,
    readings: readonly TextReading[],
    { reader, ...options }: EngineOptions & { readonly reader: Reader | undefined },
  ): Promise<NeuralEngine> {
    const alone = { ...spec, runtime: { ...spec.runtime, threads: spec.runtime.threadsAlone } };
    const program = {
      name: spec.kind,
      rate: spec.rate,
      file,
      startLimitMs,
      silenceLimitMs,
      args: [JSON.stringify(spec)],
      ...(alone.runtime.threads !== spec.runtime.threads && { argsAlone: [JSON.stringify(alone)] }),
    };
    return new NeuralEngine(await ProcessPool.open(program, options), reader, readings);
  }

  get name(): string {
    return this.#pool.name;
  }

  get rate(): number {
    return this.#pool.rate;
  }

  get capacity(): number {
    return this.#pool.capacity;
  }

  get variant(): string | undefined {
    return this.#pool.variant;
  }

  get restarts(): number {
    return this.#pool.restarts;
  }

  /** IDs of the running processes, with which a test kills one. */
  pids(): number[] {
    return this.#pool.pids();
  }

  async *speak(utterance: Utterance, signal: AbortSignal): AsyncGenerator<EngineFrame, void, void> {
    const sounds = await this.#read(utterance, signal);
    if (!sounds) return;
    const tokens = utterance.tokens.map((token, i): Token => ({ ...token, sounds: sounds[i] ?? [] }));
    yield* this.#pool.speak({ ...utterance, tokens }, signal);
  }

  healthy(): boolean {
    return this.#pool.healthy();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #read(utterance: Utterance, signal: AbortSignal): Promise<readonly Sounds[] | undefined> {
    const speaker = utterance.voice.kind === "neural" ? utterance.voice.speaker : 0;
    const reading = this.#readings[speaker] ?? this.#readings.at(-1);
    if (reading?.kind !== "espeak" || !this.#reader) return utterance.tokens.map(({ text }) => [...text]);
    const voice = { kind: "espeak", voice: reading.voice, pitch: 50, stretch: 1 } as const;
    const tokens = utterance.tokens.map((token) => ({ ...token, stretch: 1 }));
    return this.#reader.read({ voice, tokens, stretch: 1 }, signal);
  }
}
