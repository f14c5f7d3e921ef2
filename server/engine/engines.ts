import type { ArcanaEngineName, ModelId } from "../../config/contract/models.ts";
import { type EngineVoice, findVoice, type Voice } from "../../config/contract/voices.ts";
import { Failure } from "../contract/errors.ts";
import type { Utterance } from "../contract/speech.ts";
import { openArcana } from "./arcana/engine.ts";
import { openEspeak } from "./espeak/engine.ts";
import { openFlite } from "./flite/engine.ts";
import { MountedVoices, type MountOptions } from "./neural/mounted-voices.ts";
import type { MountedVoice } from "./neural/package.ts";
import { type Engine, EngineMissing, type EngineOptions } from "./runtime/engine.ts";
import { type GeneratorOptions, VllmEngine } from "./vllm/engine.ts";
import { timesBy } from "./vllm/word-timestamps.ts";

/** The engine that synthesizes a voice on this machine, and the voice in the engine's own terms. */
export interface VoiceEngine {
  readonly engine: Engine;
  readonly voice: Utterance["voice"];
  /**
   * Called at the end of the synthesis. A voice that was removed or replaced in the meantime is then freed.
   */
  release(): void;
}

/** A voice of the catalogue, or of the mounted folder. */
export type KnownVoice = Voice | MountedVoice;

/** Settings of mounted voices. Undefined without a folder. */
export type MountSettings = Omit<MountOptions, "log" | "reader">;

interface EnginesOptions extends EngineOptions {
  /** The generator of English; `flite` by default. */
  readonly generator?: ArcanaEngineName | undefined;
  /** The model of `vllm`. */
  readonly model?: Omit<GeneratorOptions, "log"> | undefined;
}

const keep = () => undefined;

/** The engines of this machine. */
export class Engines {
  readonly #engines: ReadonlyMap<EngineVoice["kind"], Engine>;
  /** The engine of arcana's own voices, if a language model is mounted. */
  readonly #generator: VllmEngine | undefined;
  /** Installation instructions for each missing engine. */
  readonly missing: readonly string[];
  /** Undefined without a mounted folder. */
  readonly mounted: MountedVoices | undefined;

  constructor(
    engines: ReadonlyMap<EngineVoice["kind"], Engine>,
    missing: readonly string[],
    mounted?: MountedVoices,
    generator?: VllmEngine,
  ) {
    this.#engines = engines;
    this.missing = missing;
    this.mounted = mounted;
    this.#generator = generator;
  }

  /**
   * @param mount the folder of mounted voices.
   * @throws Error if the files of the selected model are incomplete.
   */
  static async open(options: EnginesOptions, mount?: MountSettings): Promise<Engines> {
    if (options.model) return openGenerated(options.model, options, mount);
    const flite = await openEnglish(options);
    const espeak = await orMissing(openEspeak(options));
    const engines = new Map<EngineVoice["kind"], Engine>();
    if (!(flite instanceof EngineMissing)) engines.set("flite", flite);
    if (!(espeak instanceof EngineMissing)) engines.set("espeak", espeak);
    const missing = [flite, espeak].filter((engine) => engine instanceof EngineMissing);
    for (const { message } of missing) options.log.warn({}, message);
    if (engines.size === 1 && engines.has("espeak")) {
      options.log.warn(
        {},
        "English is spoken by eSpeak NG, which is less natural, since Flite is not installed.",
      );
    }
    const reader = espeak instanceof EngineMissing ? undefined : espeak;
    const mounted = mount && (await MountedVoices.open({ ...mount, log: options.log, reader }));
    const reasons = missing.map(({ message }) => message);
    return new Engines(engines, reasons, mounted);
  }

  all(): Engine[] {
    return [...(this.#generator ? [this.#generator] : []), ...this.#engines.values()];
  }

  /**
   * Engines that synthesize. An engine that only reads for a generator may fail: speech without word
   * timestamps is better than no speech.
   */
  speaking(): Engine[] {
    return this.#generator && !this.mounted ? [this.#generator] : this.all();
  }

  /** Whether an engine works, now or within its restart budget. */
  healthy(): boolean {
    return this.speaking().length > 0 && this.speaking().every((engine) => engine.healthy());
  }

  /** Reason why one of the engines does not work at the moment. */
  notReady(): string | undefined {
    return this.all()
      .map((engine) => engine.notReady?.())
      .find((reason) => reason !== undefined);
  }

  /** Measured number of concurrent streams that stay faster than real time. */
  get realTimeStreams(): number {
    return Math.min(...this.all().map(({ realTimeStreams = Number.POSITIVE_INFINITY }) => realTimeStreams));
  }

  findVoice(id: string): KnownVoice | undefined {
    return findVoice(id) ?? this.mounted?.find(id);
  }

  /**
   * @throws Failure `model_unreachable` if the voice's engine is not installed, or its files were removed.
   */
  speakerFor(voice: KnownVoice, model: ModelId): VoiceEngine {
    if (isMounted(voice)) return this.#mountedSpeaker(voice.id);
    return this.mounted?.replacementFor(voice.id, model) ?? this.builtInSpeakerFor(voice);
  }

  /**
   * The engine of a built-in voice, also if a mounted voice replaces it.
   * @throws Failure `model_unreachable` if the engine is not installed.
   */
  builtInSpeakerFor({ id, engine: voice }: Voice): VoiceEngine {
    if (this.#generator) {
      const generated = { kind: "generated", name: this.#generator.voiceOf(id) } as const;
      return { engine: this.#generator, voice: generated, release: keep };
    }
    const own = this.#engines.get(voice.kind);
    if (own) return { engine: own, voice, release: keep };
    const espeak = this.#engines.get("espeak");
    if (espeak && voice.kind === "flite") return { engine: espeak, voice: asEspeak(voice), release: keep };
    throw new Failure(
      "model_unreachable",
      "The engine of this voice is not installed on the server; the server's log says what to install.",
      { retryAfterSeconds: 60 },
    );
  }

  /** Names the engine of a built-in voice and its license, or undefined if the engine is not installed. */
  describe(voice: Voice, model: ModelId): { readonly engine: string; readonly license: string } | undefined {
    const replacement = this.mounted?.replacementOf(voice.id, model);
    const engine = replacement
      ? this.mounted?.engineOf(replacement.id)
      : (this.#generator ?? this.#builtInEngine(voice.engine))?.name;
    return engine === undefined ? undefined : { engine, license: (replacement ?? voice).license };
  }

  #builtInEngine({ kind }: EngineVoice): Engine | undefined {
    return this.#engines.get(kind) ?? this.#engines.get("espeak");
  }

  #mountedSpeaker(id: string): VoiceEngine {
    const speaker = this.mounted?.speakerFor(id);
    if (speaker) return speaker;
    throw new Failure("model_unreachable", "This voice was removed from the server a moment ago.", {
      retryAfterSeconds: 5,
    });
  }

  async close(): Promise<void> {
    await this.mounted?.close(); // Started before eSpeak NG, which reads for it.
    await Promise.all(this.all().map((engine) => engine.close()));
  }
}

export function isMounted(voice: KnownVoice): voice is MountedVoice {
  return voice.engine.kind === "neural";
}

const standIns = { awb: "en-gb-scotland", rms: "en-us", slt: "en-us+f3", kal16: "en-us+m3" } as const;

/** Without Flite, eSpeak NG speaks English at the same pitch and speed. */
function asEspeak(voice: Extract<EngineVoice, { kind: "flite" }>): EngineVoice {
  return {
    kind: "espeak",
    voice: standIns[voice.voice],
    pitch: 50 * voice.pitch,
    stretch: voice.stretch,
  };
}

/**
 * A mounted language model for arcana's own voices, and eSpeak NG, which reads for mounted voices and
 * measures words.
 */
async function openGenerated(
  model: Omit<GeneratorOptions, "log">,
  options: EnginesOptions,
  mount: MountSettings | undefined,
): Promise<Engines> {
  const { log } = options;
  const espeak = await orMissing(openEspeak({ ...options, processes: mount ? options.processes : 1 }));
  const reader = espeak instanceof EngineMissing ? undefined : espeak;
  if (espeak instanceof EngineMissing) log.warn({}, `${espeak.message} arcana has no word times.`);
  let generator: VllmEngine | undefined;
  try {
    const readTimes = reader && timesBy(reader);
    generator = await VllmEngine.open({ ...model, log, readTimes });
    const mounted = mount && (await MountedVoices.open({ ...mount, log, reader }));
    return new Engines(new Map(reader && [["espeak", reader]]), [], mounted, generator);
  } catch (error) {
    await generator?.close();
    await reader?.close();
    throw error;
  }
}

/**
 * The selected generator, or Flite if the model cannot run. The model of this repository also speaks for Kokoro until
 * Kokoro is loaded.
 */
async function openEnglish(options: EnginesOptions): Promise<Engine | EngineMissing> {
  if (options.generator === "mini" || options.generator === "kokoro") {
    const mini = await orMissing(openArcana(options));
    if (!(mini instanceof EngineMissing)) return mini;
    options.log.warn({}, `${mini.message} Flite speaks arcana instead.`);
  }
  return orMissing(openFlite(options));
}

async function orMissing<Kind extends Engine>(opening: Promise<Kind>): Promise<Kind | EngineMissing> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof EngineMissing) return error;
    throw error;
  }
}
