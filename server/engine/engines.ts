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
import { soundsBy } from "./vllm/prompt-text.ts";
import { timesBy } from "./vllm/word-timestamps.ts";

/** The engine that synthesizes a voice, and the engine's own description of the voice. */
export interface VoiceEngine {
  readonly engine: Engine;
  readonly voice: Utterance["voice"];
  /**
   * Ends the use of the engine. If the voice was removed or replaced during the synthesis, the call also
   * closes the engine.
   */
  release(): void;
}

/** A voice of the catalogue, or a mounted voice. */
export type KnownVoice = Voice | MountedVoice;

/** The settings of the folder of mounted voices. */
export type MountSettings = Omit<MountOptions, "log" | "reader">;

interface EnginesOptions extends EngineOptions {
  /** The generator of arcana's English voices; the default is `flite`. */
  readonly generator?: ArcanaEngineName | undefined;
  /** The language model of the generator `vllm`. */
  readonly model?: Omit<GeneratorOptions, "log"> | undefined;
}

const keep = () => undefined;

/** The engines that run on this machine, and the selection of an engine for each voice. */
export class Engines {
  readonly #engines: ReadonlyMap<EngineVoice["kind"], Engine>;
  /** The engine of arcana's own voices. The value is undefined if no language model is mounted. */
  readonly #generator: VllmEngine | undefined;
  /** The installation instructions for each missing engine. */
  readonly missing: readonly string[];
  /** The mounted voices. The value is undefined if no folder of voices is mounted. */
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
   * Opens the engines.
   * @param mount the settings of mounted voices.
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
        "Flite is not installed, so eSpeak NG synthesizes English, which sounds less natural.",
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
   * Returns the engines that synthesize. Without mounted voices, a generator needs eSpeak NG only for word
   * timestamps, so a failure of eSpeak NG does not affect the speech.
   */
  speaking(): Engine[] {
    return this.#generator && !this.mounted ? [this.#generator] : this.all();
  }

  /** Returns whether every engine that synthesizes works, or restarts within its budget. */
  healthy(): boolean {
    return this.speaking().length > 0 && this.speaking().every((engine) => engine.healthy());
  }

  /** Returns the reason why an engine does not work at the moment. Returns undefined if all engines work. */
  notReady(): string | undefined {
    return this.all()
      .map((engine) => engine.notReady?.())
      .find((reason) => reason !== undefined);
  }

  /** The measured number of concurrent streams that the slowest engine synthesizes faster than real time. */
  get realTimeStreams(): number {
    return Math.min(...this.all().map(({ realTimeStreams = Number.POSITIVE_INFINITY }) => realTimeStreams));
  }

  findVoice(id: string): KnownVoice | undefined {
    return findVoice(id) ?? this.mounted?.find(id);
  }

  /**
   * Returns the engine of a voice. The caller must release the engine.
   * @throws Failure `model_unreachable` if the engine is not installed, or the voice's files were removed.
   */
  speakerFor(voice: KnownVoice, model: ModelId): VoiceEngine {
    if (isMounted(voice)) return this.#mountedSpeaker(voice.id);
    return this.mounted?.replacementFor(voice.id, model) ?? this.builtInSpeakerFor(voice);
  }

  /**
   * Returns the engine of a built-in voice, also if a mounted voice replaces the built-in voice.
   * @throws Failure `model_unreachable` if the engine is not installed.
   */
  builtInSpeakerFor({ id, engine: voice }: Voice): VoiceEngine {
    if (this.#generator) {
      const generated = { kind: "generated", name: id } as const;
      return { engine: this.#generator, voice: generated, release: keep };
    }
    const own = this.#engines.get(voice.kind);
    if (own) return { engine: own, voice, release: keep };
    const espeak = this.#engines.get("espeak");
    if (espeak && voice.kind === "flite") return { engine: espeak, voice: asEspeak(voice), release: keep };
    throw new Failure(
      "model_unreachable",
      `The engine of voice "${id}" is not installed on the server. The server's log names the package to install.`,
      { retryAfterSeconds: 60 },
    );
  }

  /**
   * Returns the name of a built-in voice's engine and the voice's license, or undefined if the engine is not
   * installed.
   */
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
    throw new Failure(
      "model_unreachable",
      `The files of voice "${id}" were removed from the server. Select another voice.`,
      { retryAfterSeconds: 5 },
    );
  }

  async close(): Promise<void> {
    await this.mounted?.close(); // Mounted voices close first, because eSpeak NG reads text for them.
    await Promise.all(this.all().map((engine) => engine.close()));
  }
}

export function isMounted(voice: KnownVoice): voice is MountedVoice {
  return voice.engine.kind === "neural";
}

const espeakReplacements = {
  awb: "en-gb-scotland",
  rms: "en-us",
  slt: "en-us+f3",
  kal16: "en-us+m3",
} as const;

/** Returns the eSpeak NG voice that replaces a Flite voice, with the same pitch and speed. */
function asEspeak(voice: Extract<EngineVoice, { kind: "flite" }>): EngineVoice {
  return {
    kind: "espeak",
    voice: espeakReplacements[voice.voice],
    pitch: 50 * voice.pitch,
    stretch: voice.stretch,
  };
}

/**
 * Opens a mounted language model for arcana's own voices. eSpeak NG reads text for mounted voices and
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
  if (espeak instanceof EngineMissing) log.warn({}, `${espeak.message} arcana returns no word timestamps.`);
  let generator: VllmEngine | undefined;
  try {
    const readers = reader && { readTimes: timesBy(reader), readSounds: soundsBy(reader) };
    generator = await VllmEngine.open({ ...model, log, ...readers });
    const mounted = mount && (await MountedVoices.open({ ...mount, log, reader }));
    return new Engines(new Map(reader && [["espeak", reader]]), [], mounted, generator);
  } catch (error) {
    await generator?.close();
    await reader?.close();
    throw error;
  }
}

/**
 * Opens the selected generator, or Flite if the generator cannot run. arcana-mini also synthesizes the
 * built-in voices until Kokoro is loaded.
 */
async function openEnglish(options: EnginesOptions): Promise<Engine | EngineMissing> {
  if (options.generator === "mini" || options.generator === "kokoro") {
    const mini = await orMissing(openArcana(options));
    if (!(mini instanceof EngineMissing)) return mini;
    options.log.warn({}, `${mini.message} Flite is used for arcana if it is installed.`);
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
