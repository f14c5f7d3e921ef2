import type { ModelId } from "../../../config/contract/models.ts";
import { findVoice } from "../../../config/contract/voices.ts";
import { sleep, systemClock } from "../../../lib/clock.ts";
import { readIfExists } from "../../../lib/read-if-exists.ts";
import { type EngineLog, EngineMissing } from "../runtime/engine.ts";
import { NeuralEngine, type Reader } from "./engine.ts";
import { findPackages } from "./folder.ts";
import { VoiceProblem } from "./manifest.ts";
import {
  type MountedVoice,
  type PackageSource,
  readPackage,
  signatureOf,
  type VoicePackage,
} from "./package.ts";
import { processLayout } from "./process-layout.ts";
import { checkReadings } from "./readings.ts";
import { checkReplacements, replacesIn } from "./replacements.ts";

export interface MountOptions {
  /** Folder of the administrator's voices. */
  readonly folder?: string | undefined;
  /**
   * Folder of models that `svc-tts models` installs. They are loaded in the background while the built-in
   * voices serve. It may not exist yet.
   */
  readonly installed?: string | undefined;
  /** A folder in it, or the folder itself, that contains no voices. */
  readonly except?: string | undefined;
  /** Voices of other models belong to another tier. */
  readonly models: readonly ModelId[];
  /** Models in which voices speak for the built-in voices that they may replace. */
  readonly naturalModels?: readonly ModelId[] | undefined;
  /** Cores that the processes of a model share. */
  readonly cores: number;
  /** Engine processes of each mounted model. The default depends on the kind of the model. */
  readonly processes?: number | undefined;
  /** Streams that a model serves at once. By default it follows from the model's speed. */
  readonly streams?: number | undefined;
  /** ONNX Runtime's execution providers, in order of preference. */
  readonly providers: readonly string[];
  readonly log: EngineLog;
  /** Undefined if eSpeak NG is not installed. */
  readonly reader: Reader | undefined;
  /** Interval of checking the folder. */
  readonly intervalMs: number;
}

/** A served model. */
export interface MountedModel {
  /** Value of `X-Voice-Engine`. */
  readonly engine: string;
  /** Variant of the engine, if it has several. */
  readonly variant: string | undefined;
  /** Streams that it serves at once. */
  readonly realTimeStreams: number;
  readonly models: readonly ModelId[];
}

/** Reason why a package is not served, or not in its newest state. */
export interface MountProblem {
  readonly file: string;
  /** JSON pointer into the file. */
  readonly field?: string;
  readonly message: string;
}

/** A loaded model. It is closed after it was replaced or removed, and its last stream has ended. */
class Loaded {
  readonly voices: readonly MountedVoice[];
  readonly engine: NeuralEngine;
  #streams = 0;
  #isRetired = false;
  readonly #closed = Promise.withResolvers<void>();

  constructor(voices: readonly MountedVoice[], engine: NeuralEngine) {
    this.voices = voices;
    this.engine = engine;
  }

  /** Keeps the model loaded until the returned function is called. */
  occupy(): () => void {
    this.#streams++;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#streams--;
      this.#closeIfLeft();
    };
  }

  /** Resolves when it is closed. */
  retire(): Promise<void> {
    this.#isRetired = true;
    this.#closeIfLeft();
    return this.#closed.promise;
  }

  #closeIfLeft(): void {
    if (this.#isRetired && this.#streams === 0) this.#closed.resolve(this.engine.close());
  }
}

/** The last evaluated state of the files, and its problem. */
interface Judgement {
  readonly signature: string;
  readonly problem: MountProblem | undefined;
  /** Checks until the next attempt. */
  readonly patience: number;
  /** Number of the check with the next attempt. */
  readonly retryAt: number;
}

/** State of one package. */
interface Place {
  /** The folder that contains it. */
  readonly folder: string;
  judged: Judgement | undefined;
  /** State of the files at the last check. It changes from check to check while they are copied. */
  seen: string | undefined;
  looksAbsent: number;
  loaded: Loaded | undefined;
  problem: MountProblem | undefined;
}

/**
 * Checks without a package until it counts as removed, because a replaced file may be absent for a moment.
 */
const looksUntilGone = 2;

/**
 * Checks until the next attempt for files with a problem, doubled each time. The cause may be outside the
 * files, such as low memory, a busy machine, or an ID that another voice has released.
 */
const firstPatience = 8;
const mostPatience = 256;

export interface MountedSpeaker {
  readonly engine: NeuralEngine;
  readonly voice: MountedVoice["engine"];
  readonly release: () => void;
}

/**
 * The voices of a mounted folder. The folder is checked periodically, because swapped links cause no events.
 */
export class MountedVoices {
  readonly #options: MountOptions;
  readonly #places = new Map<string, Place>();
  readonly #retiring = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #folderProblems = new Map<string, MountProblem>();
  #looks = 0;
  #watching: Promise<void> = Promise.resolve();

  private constructor(options: MountOptions) {
    this.#options = options;
  }

  /**
   * Loads the voices of the mounted folder, then follows both folders. Problems are logged and returned by
   * `problems`, never thrown.
   */
  static async open(options: MountOptions): Promise<MountedVoices> {
    const mounted = new MountedVoices(options);
    mounted.#looks++;
    await mounted.#lookInto(options.folder);
    mounted.#watching = mounted.#watch();
    return mounted;
  }

  /** Voices under their own IDs. Those of another tier's models only speak for built-in voices here. */
  voices(): MountedVoice[] {
    return this.#loadedVoices().filter((voice) => this.#isOfThisTier(voice));
  }

  /** Engines of the served models. */
  engines(): NeuralEngine[] {
    return this.#loaded().map(({ engine }) => engine);
  }

  problems(): MountProblem[] {
    const found = [...this.#places.values()].flatMap(({ problem }) => problem ?? []);
    return [...this.#folderProblems.values(), ...found];
  }

  /** Number of models in memory, including those that only finish their streams. */
  modelsInMemory(): number {
    return this.#loaded().length + this.#retiring.size;
  }

  find(id: string): MountedVoice | undefined {
    return this.voices().find((voice) => voice.id === id);
  }

  /** Holds the voice's model until it is released. Undefined if the voice was removed. */
  speakerFor(id: string): MountedSpeaker | undefined {
    for (const loaded of this.#loaded()) {
      const voice = loaded.voices.find((candidate) => candidate.id === id);
      if (voice) return { engine: loaded.engine, voice: voice.engine, release: loaded.occupy() };
    }
    return undefined;
  }

  /** The speaker that replaces a built-in voice in a model, or undefined. */
  replacementFor(id: string, model: ModelId): MountedSpeaker | undefined {
    const replacement = this.replacementOf(id, model);
    return replacement && this.speakerFor(replacement.id);
  }

  /** The voice that replaces a built-in voice in a model, or undefined. */
  replacementOf(id: string, model: ModelId): MountedVoice | undefined {
    const { naturalModels = [] } = this.#options;
    return this.#loadedVoices().find((voice) => replacesIn(voice, id, model, naturalModels));
  }

  /** Name of the engine of a voice. */
  engineOf(id: string): string | undefined {
    return this.#loaded().find(({ voices }) => voices.some((voice) => voice.id === id))?.engine.name;
  }

  /** Served models with their engines and variants. */
  models(): MountedModel[] {
    return this.#loaded().map(({ engine, voices }) => ({
      engine: engine.name,
      variant: engine.variant,
      realTimeStreams: engine.realTimeStreams,
      models: this.#options.models.filter((model) => voices.some((voice) => this.#speaksIn(voice, model))),
    }));
  }

  /** Called after all streams have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
    for (const place of this.#places.values()) this.#retire(place);
    await Promise.all(this.#retiring);
  }

  #loadedVoices(): MountedVoice[] {
    return this.#loaded().flatMap(({ voices }) => voices);
  }

  #isOfThisTier({ models }: MountedVoice): boolean {
    return models.some((model) => this.#options.models.includes(model));
  }

  /** Whether it speaks for a built-in voice in a model. */
  #isStandIn(voice: MountedVoice, model: ModelId): boolean {
    const { naturalModels = [] } = this.#options;
    return [...voice.replaces, ...voice.mayReplace].some((id) => replacesIn(voice, id, model, naturalModels));
  }

  #speaksIn(voice: MountedVoice, model: ModelId): boolean {
    return voice.models.includes(model) || this.#isStandIn(voice, model);
  }

  #loaded(): Loaded[] {
    return [...this.#places.values()].flatMap(({ loaded }) => loaded ?? []);
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing;
    const { folder, installed, intervalMs } = this.#options;
    await this.#lookInto(installed);
    while (!signal.aborted) {
      await sleep(systemClock, intervalMs, signal);
      this.#looks++;
      for (const each of [folder, installed]) if (!signal.aborted) await this.#lookInto(each);
    }
  }

  async #lookInto(folder: string | undefined): Promise<void> {
    if (folder === undefined) return;
    let packages: readonly PackageSource[];
    try {
      packages = await this.#packagesIn(folder);
    } catch (error) {
      const problem = { file: folder, message: `cannot be read: ${text(error)}` };
      this.#folderProblems.set(folder, this.#tell(this.#folderProblems.get(folder), problem));
      return; // Loaded voices stay: a folder that is swapped is absent for a moment.
    }
    this.#folderProblems.delete(folder);
    this.#forgetAbsent(folder, new Set(packages.map(keyOf)));
    for (const source of packages) await this.#lookAt(source);
  }

  async #packagesIn(folder: string): Promise<readonly PackageSource[]> {
    const { except, installed } = this.#options;
    const packages = findPackages(folder, except);
    return folder === installed ? ((await readIfExists(packages)) ?? []) : packages;
  }

  #forgetAbsent(folder: string, present: ReadonlySet<string>): void {
    for (const [key, place] of this.#places) {
      if (place.folder !== folder) continue;
      place.looksAbsent = present.has(key) ? 0 : place.looksAbsent + 1;
      if (place.looksAbsent < looksUntilGone) continue;
      if (place.loaded) this.#options.log.info({ file: key }, "a mounted voice was removed");
      this.#retire(place);
      this.#places.delete(key);
    }
  }

  async #lookAt(source: PackageSource): Promise<void> {
    const place = this.#placeOf(source);
    try {
      const signature = await signatureOf(source);
      const isSettled = signature === place.seen || (source.kind === "manifest" && !place.judged);
      place.seen = signature;
      if (isSettled && isDue(place.judged, signature, this.#looks) && !this.#closing.signal.aborted) {
        const patience = nextPatience(place.judged, signature);
        const problem = await this.#judge(source, place);
        place.judged = { signature, problem, patience, retryAt: this.#looks + patience };
      }
      place.problem = place.judged?.problem;
    } catch (error) {
      place.problem = this.#tell(place.problem, problemOf(source, error)); // The files are incomplete.
    }
  }

  async #judge(source: PackageSource, place: Place): Promise<MountProblem | undefined> {
    try {
      await this.#load(source, place);
      return undefined;
    } catch (error) {
      return this.#tell(place.problem, problemOf(source, error));
    }
  }

  #placeOf(source: PackageSource): Place {
    const known = this.#places.get(keyOf(source));
    if (known) return known;
    const place: Place = {
      folder: source.folder,
      judged: undefined,
      seen: undefined,
      looksAbsent: 0,
      loaded: undefined,
      problem: undefined,
    };
    this.#places.set(keyOf(source), place);
    return place;
  }

  async #load(source: PackageSource, place: Place): Promise<void> {
    const { models, cores, processes: wanted, providers, streams, log, reader } = this.#options;
    const layoutOf = (kind: VoicePackage["spec"]["kind"]) => processLayout(kind, cores, wanted);
    const found = await readPackage(source, (kind) => ({ providers, ...layoutOf(kind) }));
    const { processes } = layoutOf(found.spec.kind);
    const voices = found.voices.filter((voice) => models.some((model) => this.#speaksIn(voice, model)));
    if (voices.length === 0) return this.#retire(place);
    this.#refuseTaken(source, place, voices);
    await checkReadings(found.readings, reader, source, this.#closing.signal);
    const engine = await NeuralEngine.open(found.spec, found.readings, { processes, streams, log, reader });
    this.#retire(place);
    place.loaded = new Loaded(voices, engine);
    const { variant, audioSpeed, realTimeStreams } = engine;
    const fields = { file: source.file, voices: voices.map(({ id }) => id), ...(variant && { variant }) };
    const speed = audioSpeed === undefined ? {} : { audioSecondsPerSecond: Number(audioSpeed.toFixed(2)) };
    log.info({ ...fields, ...speed, streams: realTimeStreams }, "a mounted voice is served");
  }

  /** @throws VoiceProblem if another voice has one of the IDs. */
  #refuseTaken(source: PackageSource, place: Place, voices: VoicePackage["voices"]): void {
    const others = this.#loaded().filter((loaded) => loaded !== place.loaded);
    const seen = new Set<string>();
    for (const [i, { id }] of voices.entries()) {
      const isTaken = seen.has(id) || others.some((loaded) => loaded.voices.some((other) => other.id === id));
      seen.add(id);
      if (!findVoice(id) && !isTaken) continue;
      const owner = findVoice(id) ? "a voice of the server itself" : "another mounted voice";
      throw new VoiceProblem(
        { file: source.file, field: `/voices/${i}/id` },
        `${id} is ${owner}; give this one another id`,
      );
    }
    checkReplacements(source, voices);
  }

  #retire(place: Place): void {
    const { loaded } = place;
    if (!loaded) return;
    place.loaded = undefined;
    const closed = loaded.retire().finally(() => this.#retiring.delete(closed));
    this.#retiring.add(closed);
  }

  /** Logs each problem once. */
  #tell(known: MountProblem | undefined, problem: MountProblem): MountProblem {
    if (known?.message !== problem.message || known.file !== problem.file) {
      this.#options.log.warn({ ...problem }, "a mounted voice is not served from its current files");
    }
    return problem;
  }
}

function keyOf({ folder, file }: PackageSource): string {
  return `${folder}/${file}`;
}

/** Whether these files are loaded in this check. */
function isDue(judged: Judgement | undefined, signature: string, look: number): boolean {
  if (judged?.signature !== signature) return true;
  return judged.problem !== undefined && look >= judged.retryAt;
}

function nextPatience(judged: Judgement | undefined, signature: string): number {
  return judged?.signature === signature ? Math.min(mostPatience, judged.patience * 2) : firstPatience;
}

function problemOf(source: PackageSource, error: unknown): MountProblem {
  if (!(error instanceof VoiceProblem)) return { file: source.file, message: text(error) };
  const { file, field, message } = error;
  return { file, ...(field !== undefined && { field }), message };
}

function text(error: unknown): string {
  return error instanceof EngineMissing || error instanceof Error ? error.message : String(error);
}
