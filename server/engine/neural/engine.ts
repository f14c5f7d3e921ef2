import { fileURLToPath } from "node:url";
import { Failure } from "../../contract/errors.ts";
import type { EngineFrame, Sounds, Token, Utterance } from "../../contract/speech.ts";
import type { Engine, EngineOptions, OnWritten } from "../runtime/engine.ts";
import { ProcessPool } from "../runtime/process-pool.ts";
import type { NeuralModelSpec } from "./onnx/model-spec.ts";
import { EngineSpeed, phraseGrowthAt, realTimeStreamsAt } from "./real-time.ts";

const file = fileURLToPath(new URL("main.ts", import.meta.url));

/**
 * Limits for a large model on a busy machine: loading takes seconds, and a long phrase up to twice its
 * duration.
 */
const startLimitMs = 120_000;
const silenceLimitMs = 120_000;

/** About three seconds of speech, with which the speed is measured. */
const measuringWords = "one two three four five six seven eight nine ten".split(" ");
/** The best round counts: another program may delay a single one. */
const measuringRounds = 2;

/** How a voice's text becomes sounds: read by an eSpeak NG voice, or letter by letter. */
export type TextReading =
  | { readonly kind: "espeak"; readonly voice: string }
  | { readonly kind: "characters" };

/** eSpeak NG's processes, which only read here. The license requires them to be separate. */
export type Reader = Pick<ProcessPool, "read">;

interface NeuralEngineOptions extends EngineOptions {
  readonly reader: Reader | undefined;
  readonly streams?: number | undefined;
}

/**
 * One mounted model in its own processes. A pool of eSpeak NG processes reads for it.
 * @param readings of each speaker, by index; the last one applies to higher indexes.
 * @throws EngineMissing with the reason if the model cannot be loaded or makes no audio.
 */
export class NeuralEngine implements Engine {
  /** The next phrase is made while this one plays. */
  readonly worksAhead = true;
  readonly #pool: ProcessPool;
  readonly #reader: Reader | undefined;
  readonly #readings: readonly TextReading[];
  readonly #speed: EngineSpeed;
  #streams: number | undefined;

  private constructor(
    pool: ProcessPool,
    reader: Reader | undefined,
    readings: readonly TextReading[],
    speed: EngineSpeed,
  ) {
    this.#pool = pool;
    this.#reader = reader;
    this.#readings = readings;
    this.#speed = speed;
  }

  /**
   * @param readings of each speaker, by number; the last holds for those above.
   * @param options `streams` is the number of streams that it serves at once, in place of the measured one.
   * @throws EngineMissing when the model cannot be loaded or does not speak; the message says why.
   */
  static async open(
    spec: NeuralModelSpec,
    readings: readonly TextReading[],
    { reader, streams, ...options }: NeuralEngineOptions,
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
    const speed = new EngineSpeed(options.processes);
    const pool = await ProcessPool.open(program, options, (audioSeconds, workSeconds) =>
      speed.phraseFinished(audioSeconds, workSeconds),
    );
    const engine = new NeuralEngine(pool, reader, readings, speed);
    engine.#streams = streams;
    try {
      const audioSpeed = await engine.#measureSpeed();
      if (audioSpeed !== undefined) speed.measured(audioSpeed);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      options.log.warn({ model: spec.model, err: error }, "the speed of a mounted model cannot be measured");
    }
    return engine;
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

  /** Seconds of audio in a second with all processes at work, measured when it was opened and by its phrases. */
  get audioSpeed(): number | undefined {
    return this.#speed.current?.audioSpeed;
  }

  get realTimeStreams(): number {
    const speed = this.#speed.current;
    return this.#streams ?? (speed ? realTimeStreamsAt(speed) : this.capacity);
  }

  get phraseGrowth(): number | undefined {
    const speed = this.#speed.current;
    return speed && phraseGrowthAt(speed, this.realTimeStreams);
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

  async *speak(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten?: OnWritten,
  ): AsyncGenerator<EngineFrame, void, void> {
    const sounds = await this.#read(utterance, signal);
    if (!sounds) return;
    const tokens = utterance.tokens.map((token, i): Token => ({ ...token, sounds: sounds[i] ?? [] }));
    yield* this.#pool.speak({ ...utterance, tokens }, signal, onWritten);
  }

  healthy(): boolean {
    return this.#pool.healthy();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /**
   * Undefined if the model has no sound for the words, as one of another script.
   * @throws Failure if it cannot speak.
   */
  async #measureSpeed(): Promise<number | undefined> {
    let best = 0;
    const voice = { kind: "neural", speaker: 0 } as const;
    const tokens = measuringWords.map((text): Token => ({ text, before: "", after: "", stretch: 1 }));
    const never = new AbortController().signal;
    const speakOnce = async () => {
      let samples = 0;
      for await (const frame of this.speak({ voice, tokens, stretch: 1 }, never))
        samples += frame.samples.length;
      return samples / this.rate;
    };
    for (let round = 0; round < measuringRounds; round++) {
      const startedAtMs = performance.now();
      const spoken = await Promise.all(Array.from({ length: this.capacity }, speakOnce));
      const seconds = (performance.now() - startedAtMs) / 1000;
      best = Math.max(best, spoken.reduce((sum, each) => sum + each, 0) / seconds);
    }
    return best > 0 ? best : undefined;
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
