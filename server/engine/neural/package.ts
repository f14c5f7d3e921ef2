import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ModelId } from "../../../config/contract/models.ts";
import type { ListedVoice, NeuralVoice } from "../../../config/contract/voices.ts";
import type { TextReading } from "./engine.ts";
import {
  type KokoroManifest,
  languageOfPiper,
  manifestOfPiper,
  type PiperConfig,
  type PiperManifest,
  readPiperConfig,
  readVocabulary,
  readVoiceManifest,
  type VoiceManifest,
  VoiceProblem,
} from "./manifest.ts";
import type { CheckedFile, NeuralModelSpec, RewrittenGraph, RuntimeOptions } from "./onnx/model-spec.ts";

/** A voice of a mounted model, as an entry of the catalogue. */
export interface MountedVoice extends ListedVoice {
  readonly engine: NeuralVoice;
  /** The built-in voices that this voice replaces while its model is loaded. */
  readonly replaces: readonly string[];
  /** The built-in voices that this voice replaces only in the models that the deployment selects. */
  readonly mayReplace: readonly string[];
}

/** One model and its voices, as described by a manifest or by Piper's own configuration file. */
export interface VoicePackage {
  readonly voices: readonly MountedVoice[];
  readonly spec: NeuralModelSpec;
  /** The reading of each speaker, by index. The last reading applies to all higher indexes. */
  readonly readings: readonly PlacedReading[];
}

/** A reading, and the file and the field that define it. */
export type PlacedReading = TextReading & {
  readonly place: { readonly file: string; readonly field: string };
};

/** The file that identifies a package: a manifest, or a Piper model that has no manifest. */
export interface PackageSource {
  /** The mounted folder. */
  readonly folder: string;
  /** The path of the file, relative to the mounted folder. */
  readonly file: string;
  readonly kind: "manifest" | "piper";
}

const maxTextBytes = 1024 * 1024;
const kokoroRate = 24_000;
const usualModels: readonly ModelId[] = ["mist", "mistv2"];
/** The size limit of a model's description. Linux limits an argument of a process to 128 KiB. */
const maxSpecBytes = 120_000;

/**
 * Returns a text that identifies the state of a package's files. The text changes when any of the files
 * changes.
 * @throws VoiceProblem if a file is missing or the manifest is invalid.
 */
export async function signatureOf(source: PackageSource): Promise<string> {
  const files = filesOf(source, await manifestFor(source, ""));
  const states = await Promise.all(files.map((file) => stateOf(source, file)));
  return states.join("\n");
}

/**
 * Reads the description of a package.
 * @throws VoiceProblem that names the file and the field.
 */
export async function readPackage(
  source: PackageSource,
  runtimeOf: (kind: VoiceManifest["kind"]) => RuntimeOptions,
): Promise<VoicePackage> {
  const model = source.kind === "piper" ? await sha256Of(source) : "";
  const manifest = await manifestFor(source, model);
  const read = manifest.kind === "piper" ? readPiper : readKokoro;
  const { providers, threads, threadsAlone } = runtimeOf(manifest.kind);
  const result = await read(source, manifest as never, { providers, threads, threadsAlone });
  if (JSON.stringify(result.spec).length > maxSpecBytes) {
    throw new VoiceProblem(
      { file: source.file },
      `describes a model of more than ${maxSpecBytes} bytes; reduce its symbols or voices`,
    );
  }
  return result;
}

async function manifestFor(source: PackageSource, sha256: string): Promise<VoiceManifest> {
  if (source.kind === "piper") return manifestOfPiper(source.file, sha256);
  return readVoiceManifest(source.file, await readText(source, source.file));
}

function filesOf(source: PackageSource, manifest: VoiceManifest): string[] {
  const named =
    manifest.kind === "piper" ? [configOf(manifest)] : [manifest.vocabulary, ...stylesOf(manifest)];
  // The rewritten graph is not listed, because the model works without it.
  const files = [manifest.model, ...named].map((path) => resolvePath(source, path));
  return source.kind === "manifest" ? [source.file, ...files] : files;
}

function configOf({ config, model }: PiperManifest): string {
  return config ?? `${model}.json`;
}

function stylesOf({ voices }: KokoroManifest): string[] {
  return voices.map(({ style }) => style);
}

/**
 * Resolves a path. A path in a manifest is relative to the manifest's folder. Without a manifest, a path is
 * relative to the mounted folder.
 */
function resolvePath({ file, kind }: PackageSource, path: string): string {
  return kind === "piper" ? path : join(dirname(file), path);
}

async function stateOf({ folder }: PackageSource, file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await stat(join(folder, file));
    return `${file} ${ino} ${size} ${mtimeMs}`;
  } catch (cause) {
    throw new VoiceProblem({ file }, `cannot be read: ${(cause as Error).message}`, { cause });
  }
}

async function readText({ folder }: PackageSource, file: string): Promise<string> {
  try {
    const bytes = await readFile(join(folder, file));
    if (bytes.length <= maxTextBytes) return bytes.toString();
  } catch (cause) {
    throw new VoiceProblem({ file }, `cannot be read: ${(cause as Error).message}`, { cause });
  }
  throw new VoiceProblem({ file }, `has more than ${maxTextBytes} bytes`);
}

async function sha256Of({ folder, file }: PackageSource): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(join(folder, file))) hash.update(piece as Buffer);
  return hash.digest("hex");
}

async function readPiper(
  source: PackageSource,
  manifest: PiperManifest,
  runtime: RuntimeOptions,
): Promise<VoicePackage> {
  const configFile = resolvePath(source, configOf(manifest));
  const config = readPiperConfig(configFile, await readText(source, configFile));
  const { noise_scale = 0.667, length_scale = 1, noise_w = 0.8 } = config.inference ?? {};
  return {
    voices: manifest.voices.map((voice, i) => ({
      id: voice.id,
      replaces: voice.replaces ?? [],
      mayReplace: voice.mayReplace ?? [],
      models: voice.models ?? usualModels,
      language: voice.language ?? languageOfPiper(configFile, config),
      gender: voice.gender,
      license: manifest.license,
      engine: {
        kind: "neural",
        speaker: speakerOf({ file: source.file, field: `/voices/${i}/speaker` }, voice, config),
      },
    })),
    spec: {
      kind: "piper",
      model: join(source.folder, resolvePath(source, manifest.model)),
      sha256: manifest.sha256,
      rate: config.audio.sample_rate,
      runtime,
      ids: config.phoneme_id_map,
      isMultiSpeaker: (config.num_speakers ?? 1) > 1,
      noiseScale: noise_scale,
      lengthScale: length_scale,
      noiseWidth: noise_w,
    },
    readings: [readingOf(configFile, config)],
  };
}

function speakerOf(
  place: { readonly file: string; readonly field: string },
  { speaker }: PiperManifest["voices"][number],
  { num_speakers = 1, speaker_id_map = {}, default_speaker_id = 0 }: PiperConfig,
): number {
  if (speaker === undefined) return default_speaker_id;
  const result = typeof speaker === "string" ? speaker_id_map[speaker] : speaker;
  if (result !== undefined && result < Math.max(1, num_speakers)) return result;
  throw new VoiceProblem(place, `must name a speaker of the model; ${JSON.stringify(speaker)} is unknown`);
}

function readingOf(file: string, { phoneme_type = "espeak", espeak }: PiperConfig): PlacedReading {
  const place = { file, field: "/espeak/voice" };
  if (phoneme_type === "text") return { kind: "characters", place };
  if (espeak) return { kind: "espeak", voice: espeak.voice, place };
  throw new VoiceProblem(place, "must name the eSpeak NG voice that reads text for this model");
}

async function readKokoro(
  source: PackageSource,
  manifest: KokoroManifest,
  runtime: RuntimeOptions,
): Promise<VoicePackage> {
  const vocabulary = resolvePath(source, manifest.vocabulary);
  return {
    voices: manifest.voices.map((voice, speaker) => ({
      id: voice.id,
      replaces: voice.replaces ?? [],
      mayReplace: voice.mayReplace ?? [],
      models: voice.models ?? usualModels,
      language: voice.language,
      gender: voice.gender,
      license: manifest.license,
      engine: { kind: "neural", speaker },
    })),
    spec: {
      kind: "kokoro",
      model: join(source.folder, resolvePath(source, manifest.model)),
      sha256: manifest.sha256,
      rate: kokoroRate,
      runtime,
      ids: readVocabulary(vocabulary, await readText(source, vocabulary)),
      ...(manifest.rewritten && { rewritten: rewrittenOf(source, manifest, manifest.rewritten) }),
      voices: manifest.voices.map(({ style, espeak }) => ({
        style: join(source.folder, resolvePath(source, style)),
        espeak,
      })),
    },
    readings: manifest.voices.map(({ espeak }, i) => ({
      kind: "espeak",
      voice: espeak,
      place: { file: source.file, field: `/voices/${i}/espeak` },
    })),
  };
}

function rewrittenOf(
  source: PackageSource,
  { voices }: KokoroManifest,
  { model, sha256, weights, windows }: NonNullable<KokoroManifest["rewritten"]>,
): RewrittenGraph {
  const absolute = (path: string) => join(source.folder, resolvePath(source, path));
  const whole = { model: absolute(model), sha256, weights };
  if (!windows) return whole;
  const { front, generator, means, channels, styles } = windows;
  const rows = voices.map(({ style }) => styles.indexOf(style));
  const fileOf = (file: CheckedFile) => ({ path: absolute(file.path), sha256: file.sha256 });
  const files = { front: fileOf(front), generator: fileOf(generator), means: fileOf(means) };
  return { ...whole, windows: { ...files, rows, channels } };
}
