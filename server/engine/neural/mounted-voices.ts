import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ModelId } from "../../../config/contract/models.ts";
import { findVoice } from "../../../config/contract/voices.ts";
import { sleep, systemClock } from "../../../lib/clock.ts";
import { readIfExists } from "../../../lib/read-if-exists.ts";
import { type EngineLog, EngineMissing } from "../runtime/engine.ts";
import { NeuralEngine, type Reader } from "./engine.ts";
import { findPackages } from "./folder.ts";
import { GeneratorManifest, VoiceProblem } from "./manifest.ts";
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
  /** The folder of voices that an administrator mounts. */
  readonly folder?: string | undefined;
  /**
   * The folder of models that `svc-tts models` installs. These models are loaded in the background while the
   * built-in voices serve. The folder may not exist yet.
   */
  readonly installed?: string | undefined;
  /** A folder that contains no voices: the mounted folder or one of its subfolders. */
  readonly except?: string | undefined;
  /** The models of this tier. Voices of other models belong to another tier. */
  readonly models: readonly ModelId[];
  /** The models in which mounted voices replace the built-in voices of `mayReplace`. */
  readonly naturalModels?: readonly ModelId[] | undefined;
  /** The number of cores that the processes of a model share. */
  readonly cores: number;
  /** The number of engine processes of each mounted model. The default depends on the kind of the model. */
  readonly processes?: number | undefined;
  /** The number of concurrent streams of a model. The default follows from the model's speed. */
  readonly streams?: number | undefined;
  /** The execution providers of ONNX Runtime, in order of preference. */
  readonly providers: readonly string[];
  readonly log: EngineLog;
  /** The eSpeak NG processes. The value is undefined if eSpeak NG is not installed. */
  readonly reader: Reader | undefined;
  /** The interval at which the folders are checked. */
  readonly intervalMs: number;
}

/** A model that is loaded. */
export interface MountedModel {
  /** The value of the header `X-Voice-Engine`. */
  readonly engine: string;
  /** The variant of the engine. The value is undefined if the engine has only one variant. */
  readonly variant: string | undefined;
  /** The number of concurrent streams that the model serves faster than real time. */
  readonly realTimeStreams: number;
  readonly models: readonly ModelId[];
}

/** The reason why a package, or its newest state, is not served. */
export interface MountProblem {
  readonly file: string;
  /** A JSON pointer to the field. */
  readonly field?: string;
  readonly message: string;
}

/**
 * A loaded model. After a replacement or removal of its files, the model is closed when its last stream has
 * ended.
 */
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
      this.#closeIfUnused();
    };
  }

  /** Closes the model when its last stream has ended. The promise resolves when the model is closed. */
  retire(): Promise<void> {
    this.#isRetired = true;
    this.#closeIfUnused();
    return this.#closed.promise;
  }

  #closeIfUnused(): void {
    if (this.#isRetired && this.#streams === 0) this.#closed.resolve(this.engine.close());
  }
}

/** The result of the last attempt to load a package. */
interface LoadAttempt {
  readonly signature: string;
  readonly problem: MountProblem | undefined;
  /** The number of checks between this attempt and the next. */
  readonly interval: number;
  /** The number of the check at which the package is loaded again. */
  readonly retryAt: number;
}

/** The state of one package. */
interface PackageState {
  /** The folder that contains the package. */
  readonly folder: string;
  lastAttempt: LoadAttempt | undefined;
  /**
   * The state of the files at the last check. While files are copied, the state differs from check to check.
   */
  lastSignature: string | undefined;
  absentChecks: number;
  loaded: Loaded | undefined;
  problem: MountProblem | undefined;
}

/**
 * The number of checks without a package after which the package counts as removed. A file that is replaced
 * may be absent for a moment.
 */
const checksUntilRemoved = 2;

/**
 * The number of checks between two attempts to load a package with a problem. The number doubles after each
 * attempt. The cause may be outside the files, such as low memory, a busy machine, or an ID that another
 * voice has released.
 */
const firstInterval = 8;
const longestInterval = 256;

export interface MountedSpeaker {
  readonly engine: NeuralEngine;
  readonly voice: MountedVoice["engine"];
  readonly release: () => void;
}

/**
 * The voices of the mounted folder and of the installed models. The folders are polled, because a swapped
 * link causes no file event.
 */
export class MountedVoices {
  readonly #options: MountOptions;
  readonly #packages = new Map<string, PackageState>();
  readonly #retiring = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #folderProblems = new Map<string, MountProblem>();
  #checks = 0;
  #watching: Promise<void> = Promise.resolve();

  private constructor(options: MountOptions) {
    this.#options = options;
  }

  /**
   * Loads the voices of the mounted folder, and then polls both folders. This function does not throw if a
   * voice has a problem: the problem is logged, and `problems` returns it.
   */
  static async open(options: MountOptions): Promise<MountedVoices> {
    const mounted = new MountedVoices(options);
    mounted.#checks++;
    await mounted.#checkFolder(options.folder);
    mounted.#watching = mounted.#watch();
    return mounted;
  }

  /**
   * Returns the voices that a client can select by their own IDs. A voice of another tier's models can only
   * replace a built-in voice.
   */
  voices(): MountedVoice[] {
    return this.#loadedVoices().filter((voice) => this.#isOfThisTier(voice));
  }

  /** Returns the engines of the loaded models. */
  engines(): NeuralEngine[] {
    return this.#loaded().map(({ engine }) => engine);
  }

  problems(): MountProblem[] {
    const packageProblems = [...this.#packages.values()].flatMap(({ problem }) => problem ?? []);
    return [...this.#folderProblems.values(), ...packageProblems];
  }

  /** Returns the number of models in memory, including removed models whose streams have not ended. */
  modelsInMemory(): number {
    return this.#loaded().length + this.#retiring.size;
  }

  find(id: string): MountedVoice | undefined {
    return this.voices().find((voice) => voice.id === id);
  }

  /**
   * Returns the speaker of a voice and keeps its model loaded until the speaker is released. Returns
   * undefined if the voice was removed.
   */
  speakerFor(id: string): MountedSpeaker | undefined {
    for (const loaded of this.#loaded()) {
      const voice = loaded.voices.find((candidate) => candidate.id === id);
      if (voice) return { engine: loaded.engine, voice: voice.engine, release: loaded.occupy() };
    }
    return undefined;
  }

  /** Returns the speaker that replaces a built-in voice in a model, or undefined. */
  replacementFor(id: string, model: ModelId): MountedSpeaker | undefined {
    const replacement = this.replacementOf(id, model);
    return replacement && this.speakerFor(replacement.id);
  }

  /** Returns the voice that replaces a built-in voice in a model, or undefined. */
  replacementOf(id: string, model: ModelId): MountedVoice | undefined {
    const { naturalModels = [] } = this.#options;
    return this.#loadedVoices().find((voice) => replacesIn(voice, id, model, naturalModels));
  }

  /** Returns the name of a voice's engine. */
  engineOf(id: string): string | undefined {
    return this.#loaded().find(({ voices }) => voices.some((voice) => voice.id === id))?.engine.name;
  }

  /** Returns the loaded models with their engines and variants. */
  models(): MountedModel[] {
    return this.#loaded().map(({ engine, voices }) => ({
      engine: engine.name,
      variant: engine.variant,
      realTimeStreams: engine.realTimeStreams,
      models: this.#options.models.filter((model) => voices.some((voice) => this.#speaksIn(voice, model))),
    }));
  }

  /** Closes all models. The caller waits until all streams have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
    for (const state of this.#packages.values()) this.#retire(state);
    await Promise.all(this.#retiring);
  }

  #loadedVoices(): MountedVoice[] {
    return this.#loaded().flatMap(({ voices }) => voices);
  }

  #isOfThisTier({ models }: MountedVoice): boolean {
    return models.some((model) => this.#options.models.includes(model));
  }

  /** Returns whether a voice replaces a built-in voice in a model. */
  #isReplacement(voice: MountedVoice, model: ModelId): boolean {
    const { naturalModels = [] } = this.#options;
    return [...voice.replaces, ...voice.mayReplace].some((id) => replacesIn(voice, id, model, naturalModels));
  }

  #speaksIn(voice: MountedVoice, model: ModelId): boolean {
    return voice.models.includes(model) || this.#isReplacement(voice, model);
  }

  #loaded(): Loaded[] {
    return [...this.#packages.values()].flatMap(({ loaded }) => loaded ?? []);
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing;
    const { folder, installed, intervalMs } = this.#options;
    await this.#checkFolder(installed);
    while (!signal.aborted) {
      await sleep(systemClock, intervalMs, signal);
      this.#checks++;
      for (const path of [folder, installed]) if (!signal.aborted) await this.#checkFolder(path);
    }
  }

  async #checkFolder(folder: string | undefined): Promise<void> {
    if (folder === undefined) return;
    let packages: readonly PackageSource[];
    try {
      packages = await this.#packagesIn(folder);
    } catch (error) {
      const problem = { file: folder, message: `cannot be read: ${text(error)}` };
      this.#folderProblems.set(folder, this.#report(this.#folderProblems.get(folder), problem));
      return; // Loaded voices stay in use, because a folder is absent for a moment while it is swapped.
    }
    this.#folderProblems.delete(folder);
    this.#removeAbsent(folder, new Set(packages.map(keyOf)));
    for (const source of packages) await this.#checkPackage(source);
  }

  async #packagesIn(folder: string): Promise<readonly PackageSource[]> {
    const { except, installed } = this.#options;
    const packages = findPackages(folder, except);
    return folder === installed ? ((await readIfExists(packages)) ?? []) : packages;
  }

  #removeAbsent(folder: string, present: ReadonlySet<string>): void {
    for (const [key, state] of this.#packages) {
      if (state.folder !== folder) continue;
      state.absentChecks = present.has(key) ? 0 : state.absentChecks + 1;
      if (state.absentChecks < checksUntilRemoved) continue;
      if (state.loaded) this.#options.log.info({ file: key }, "a mounted voice was removed");
      this.#retire(state);
      this.#packages.delete(key);
    }
  }

  async #checkPackage(source: PackageSource): Promise<void> {
    const state = this.#stateOf(source);
    try {
      const signature = await signatureOf(source);
      const isSettled =
        signature === state.lastSignature || (source.kind === "manifest" && !state.lastAttempt);
      state.lastSignature = signature;
      if (isSettled && isDue(state.lastAttempt, signature, this.#checks) && !this.#closing.signal.aborted) {
        const interval = nextInterval(state.lastAttempt, signature);
        const problem = await this.#tryLoad(source, state);
        state.lastAttempt = { signature, problem, interval, retryAt: this.#checks + interval };
      }
      state.problem = state.lastAttempt?.problem;
    } catch (error) {
      if (error instanceof GeneratorManifest && (await isInstalled(source))) return;
      // A file is missing, or the manifest is invalid.
      state.problem = this.#report(state.problem, problemOf(source, error));
    }
  }

  async #tryLoad(source: PackageSource, state: PackageState): Promise<MountProblem | undefined> {
    try {
      await this.#load(source, state);
      return undefined;
    } catch (error) {
      return this.#report(state.problem, problemOf(source, error));
    }
  }

  #stateOf(source: PackageSource): PackageState {
    const existing = this.#packages.get(keyOf(source));
    if (existing) return existing;
    const state: PackageState = {
      folder: source.folder,
      lastAttempt: undefined,
      lastSignature: undefined,
      absentChecks: 0,
      loaded: undefined,
      problem: undefined,
    };
    this.#packages.set(keyOf(source), state);
    return state;
  }

  async #load(source: PackageSource, state: PackageState): Promise<void> {
    const { models, cores, processes: requestedProcesses, providers, streams, log, reader } = this.#options;
    const layoutOf = (kind: VoicePackage["spec"]["kind"]) => processLayout(kind, cores, requestedProcesses);
    const description = await readPackage(source, (kind) => ({ providers, ...layoutOf(kind) }));
    const { processes } = layoutOf(description.spec.kind);
    const voices = description.voices.filter((voice) => models.some((model) => this.#speaksIn(voice, model)));
    if (voices.length === 0) return this.#retire(state);
    this.#checkIds(source, state, voices);
    await checkReadings(description.readings, reader, source, this.#closing.signal);
    const engine = await NeuralEngine.open(description.spec, description.readings, {
      processes,
      streams,
      log,
      reader,
    });
    this.#retire(state);
    state.loaded = new Loaded(voices, engine);
    const { variant, audioSpeed, realTimeStreams } = engine;
    const fields = { file: source.file, voices: voices.map(({ id }) => id), ...(variant && { variant }) };
    const speed = audioSpeed === undefined ? {} : { audioSecondsPerSecond: Number(audioSpeed.toFixed(2)) };
    log.info({ ...fields, ...speed, streams: realTimeStreams }, "a mounted voice is served");
  }

  /**
   * Checks the IDs and the replacements of voices.
   * @throws VoiceProblem if another voice has one of the IDs, or a replacement is invalid.
   */
  #checkIds(source: PackageSource, state: PackageState, voices: VoicePackage["voices"]): void {
    const others = this.#loaded().filter((loaded) => loaded !== state.loaded);
    const ids = new Set<string>();
    for (const [i, { id }] of voices.entries()) {
      const isTaken = ids.has(id) || others.some((loaded) => loaded.voices.some((other) => other.id === id));
      ids.add(id);
      if (!findVoice(id) && !isTaken) continue;
      const owner = findVoice(id) ? "a built-in voice" : "another mounted voice";
      throw new VoiceProblem(
        { file: source.file, field: `/voices/${i}/id` },
        `"${id}" is the id of ${owner}; choose another id`,
      );
    }
    checkReplacements(source, voices);
  }

  #retire(state: PackageState): void {
    const { loaded } = state;
    if (!loaded) return;
    state.loaded = undefined;
    const closed = loaded.retire().finally(() => this.#retiring.delete(closed));
    this.#retiring.add(closed);
  }

  /** Logs a problem if it differs from the previous problem. */
  #report(existing: MountProblem | undefined, problem: MountProblem): MountProblem {
    if (existing?.message !== problem.message || existing.file !== problem.file) {
      this.#options.log.warn({ ...problem }, "the current files of a mounted voice are not served");
    }
    return problem;
  }
}

function keyOf({ folder, file }: PackageSource): string {
  return `${folder}/${file}`;
}

/**
 * Returns whether `svc-tts models get` installed the package. A folder of installed models may include a
 * model of arcana, which other tiers do not load.
 */
async function isInstalled({ folder, file }: PackageSource): Promise<boolean> {
  return (await readIfExists(stat(join(folder, dirname(file), "installed.json")))) !== undefined;
}

function isDue(lastAttempt: LoadAttempt | undefined, signature: string, check: number): boolean {
  if (lastAttempt?.signature !== signature) return true;
  return lastAttempt.problem !== undefined && check >= lastAttempt.retryAt;
}

function nextInterval(lastAttempt: LoadAttempt | undefined, signature: string): number {
  return lastAttempt?.signature === signature
    ? Math.min(longestInterval, lastAttempt.interval * 2)
    : firstInterval;
}

function problemOf(source: PackageSource, error: unknown): MountProblem {
  if (!(error instanceof VoiceProblem)) return { file: source.file, message: text(error) };
  const { file, field, message } = error;
  return { file, ...(field !== undefined && { field }), message };
}

function text(error: unknown): string {
  return error instanceof EngineMissing || error instanceof Error ? error.message : String(error);
}
