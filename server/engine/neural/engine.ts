import { fileURLToPath } from "node:url";
import { Failure } from "../../contract/errors.ts";
import type { EngineFrame, Sounds, Token, Utterance } from "../../contract/speech.ts";
import type { Engine, EngineOptions, OnBegun, OnWritten } from "../runtime/engine.ts";
import { ProcessPool } from "../runtime/process-pool.ts";
import type { NeuralModelSpec } from "./onnx/model-spec.ts";
import { EngineSpeed, mayUseWindowsAt, phraseGrowthAt, realTimeStreamsAt } from "./real-time.ts";

const file = fileURLToPath(new URL("main.ts", import.meta.url));

/**
 * The limits for a large model on a busy machine. The model takes seconds to load, and a long phrase may take
 * twice its duration.
 */
const startLimitMs = 120_000;
const silenceLimitMs = 120_000;

/** The text with which the speed is measured: about three seconds of speech. */
const measuringWords = "one two three four five six seven eight nine ten".split(" ");
/**
 * The number of measurements. The best result is used, because another program may delay one of the
 * measurements.
 */
const measuringRounds = 2;

/** The conversion of a voice's text into sounds: by an eSpeak NG voice, or letter by letter. */
export type TextReading =
  | { readonly kind: "espeak"; readonly voice: string }
  | { readonly kind: "characters" };

/**
 * The eSpeak NG processes, which read text for mounted voices. eSpeak NG's license requires separate
 * processes.
 */
export type Reader = Pick<ProcessPool, "read">;

interface NeuralEngineOptions extends EngineOptions {
  readonly reader: Reader | undefined;
  readonly streams?: number | undefined;
}

/**
 * One mounted model, which runs in its own processes. A pool of eSpeak NG processes reads text for the model.
 */
export class NeuralEngine implements Engine {
  /** The next phrase is synthesized while the current phrase plays. */
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
   * Starts the processes and measures their speed.
   * @param readings the reading of each speaker, by index. The last reading applies to all higher indexes.
   * @param options `streams` is the number of concurrent streams, which replaces the measured number.
   * @throws EngineMissing with the reason if the model cannot be loaded or returns no audio.
   */
  static async open(
    spec: NeuralModelSpec,
    readings: readonly TextReading[],
    { reader, streams, ...options }: NeuralEngineOptions,
  ): Promise<NeuralEngine> {
    const aloneSpec = { ...spec, runtime: { ...spec.runtime, threads: spec.runtime.threadsAlone } };
    const program = {
      name: spec.kind,
      rate: spec.rate,
      file,
      startLimitMs,
      silenceLimitMs,
      args: [JSON.stringify(spec)],
      ...(aloneSpec.runtime.threads !== spec.runtime.threads && { argsAlone: [JSON.stringify(aloneSpec)] }),
    };
    const { threads, threadsAlone } = spec.runtime;
    // This share assumes that the speed of a process is proportional to its threads. The speed grows less
    // than that, so the processes with fewer threads reach at least this share.
    const speed = new EngineSpeed(
      options.processes,
      Math.min(1, (options.processes * threads) / threadsAlone),
    );
    const pool = await ProcessPool.open(program, options, (phrase) => speed.phraseFinished(phrase));
    const engine = new NeuralEngine(pool, reader, readings, speed);
    engine.#streams = streams;
    try {
      const audioSpeed = await engine.#measureSpeed();
      if (audioSpeed !== undefined) speed.measured(audioSpeed);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      options.log.warn(
        { model: spec.model, err: error },
        "the speed of a mounted model could not be measured; each process serves one stream",
      );
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

  /**
   * The seconds of audio that all processes together synthesize in one second, measured when the engine was
   * opened and with each later phrase.
   */
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

  /** Returns the process IDs of the running processes. A test uses the IDs to kill a process. */
  pids(): number[] {
    return this.#pool.pids();
  }

  async *speak(
    utterance: Utterance,
    signal: AbortSignal,
    onWritten?: OnWritten,
    onBegun?: OnBegun,
  ): AsyncGenerator<EngineFrame, void, void> {
    const sounds = await this.#read(utterance, signal);
    if (!sounds) return;
    const tokens = utterance.tokens.map((token, i): Token => ({ ...token, sounds: sounds[i] ?? [] }));
    const speed = this.#speed.current;
    const inWindows = utterance.isFirst === true && speed !== undefined && mayUseWindowsAt(speed);
    yield* this.#pool.speak({ ...utterance, tokens, inWindows }, signal, onWritten, onBegun);
  }

  healthy(): boolean {
    return this.#pool.healthy();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /**
   * Measures the speed. Returns undefined if the model has no sounds for the words, for example because it
   * supports only another script.
   * @throws Failure if the model cannot synthesize.
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
      const durations = await Promise.all(Array.from({ length: this.capacity }, speakOnce));
      const seconds = (performance.now() - startedAtMs) / 1000;
      best = Math.max(best, durations.reduce((sum, duration) => sum + duration, 0) / seconds);
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
