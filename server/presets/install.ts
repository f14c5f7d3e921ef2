import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, rename, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { type KokoroManifest, readVocabulary } from "../engine/neural/manifest.ts";
import { type RewriteOutcome, rewriteGraph, type WindowsOutcome } from "../engine/rewriting/rewrite.ts";
import { FetchFailure } from "../fetch/failure.ts";
import { withLock } from "../fetch/lock.ts";
import { type Installation, installationName, isWhole, readInstallation, stagingName } from "./installed.ts";
import { presetFolder } from "./preset.ts";
import type { InstallablePreset } from "./resolve.ts";
import { type SourceContext, Sources } from "./sources.ts";

export interface InstallOptions extends Omit<SourceContext, "archives"> {
  /** The folder that contains a folder for each preset. */
  readonly folder: string;
  /** Returns the time in milliseconds since the epoch. */
  readonly now: () => number;
  /** Rewrites the graph of the model. The default is `rewriteGraph`. */
  readonly rewrite?: typeof rewriteGraph;
}

const rewrittenName = "rewritten.onnx";
const partNames = { front: "front.onnx", generator: "generator.onnx", means: "means.bin" } as const;
const manifestName = "manifest.json";
/**
 * The installation reports a file when the files since the last report have this share of all bytes, or when
 * this time has passed.
 */
const reportedShare = 0.1;
const reportEveryMs = 5_000;
/** The file of the Apache license, which is also the license of this program. */
const apacheLicense = new URL("../../LICENSE", import.meta.url);
/**
 * The required disk space, relative to the size of the preset's files. This space includes archives and
 * partial files.
 */
const diskSpaceFactor = 2;
/** The required disk space for a model with a rewritten graph, relative to the size of the preset's files. */
const rewrittenSpaceFactor = 4;

/**
 * Installs a preset. The function fetches and verifies the files, rewrites the graph, and then renames the
 * complete folder to its final name. Files of an interrupted attempt are used again.
 * @throws FetchFailure with a message for the user.
 */
export async function installPreset(
  preset: InstallablePreset,
  options: InstallOptions,
): Promise<{ installation: Installation; isNew: boolean }> {
  const { folder, log, signal } = options;
  await mkdir(folder, { recursive: true });
  const lock = {
    signal,
    onWaiting: () =>
      log.info({}, "another process is installing into this folder; waiting until the process has finished"),
  };
  return withLock(join(folder, `.${preset.id}.lock`), lock, async (lockSignal) => {
    const existing = await readInstallation(folder, preset);
    if (existing && (await areWhole(join(folder, preset.id), preset))) {
      await renewManifest(join(folder, preset.id), preset, existing);
      return { installation: existing, isNew: false };
    }
    return { installation: await install(preset, { ...options, signal: lockSignal }), isNew: true };
  });
}

/**
 * Updates the manifest of an installed preset, because an earlier version of this program may have written
 * fewer fields.
 */
async function renewManifest(
  folder: string,
  preset: InstallablePreset,
  installation: Installation,
): Promise<void> {
  const target = join(folder, manifestName);
  const record = await readFile(join(folder, installationName), "utf8");
  const expected = manifestText(preset, installation.rewriting, record);
  if ((await readIfExists(readFile(target, "utf8"))) === expected) return;
  await writeFile(`${target}.new`, expected);
  await rename(`${target}.new`, target);
}

async function areWhole(folder: string, { files }: InstallablePreset): Promise<boolean> {
  for (const file of files) if (!(await isWhole(folder, file))) return false;
  return true;
}

async function install(preset: InstallablePreset, options: InstallOptions): Promise<Installation> {
  const { folder, now } = options;
  const staging = join(folder, stagingName(preset.id));
  const archives = join(staging, ".archives");
  await mkdir(archives, { recursive: true });
  await requireDiskSpace(preset, staging);
  const origins = await fetchFiles(preset, { staging, archives }, options);
  await addOwnFiles(preset, staging);
  const rewriting = await tryRewrite(preset, staging, options);
  const installation: Installation = {
    preset: preset.id,
    installedAt: new Date(now()).toISOString(),
    source: origins[0] ?? "an earlier attempt",
    ...(rewriting && { rewriting }),
  };
  const record = JSON.stringify(installation, null, 2);
  await writeFile(join(staging, installationName), record);
  await writeFile(join(staging, manifestName), manifestText(preset, rewriting, record));
  await rm(archives, { recursive: true });
  await rm(join(staging, ".fetch"), { recursive: true, force: true });
  await rm(join(folder, preset.id), { recursive: true, force: true });
  await rename(staging, join(folder, preset.id));
  return installation;
}

/**
 * Fetches the missing files.
 * @returns the sources of the fetched files.
 */
async function fetchFiles(
  preset: InstallablePreset,
  { staging, archives }: { readonly staging: string; readonly archives: string },
  options: InstallOptions,
): Promise<string[]> {
  const { env, log, signal, mirror, now } = options;
  const sources = new Sources({ folder: staging, archives, env, log, signal, mirror });
  const origins: string[] = [];
  const isDue = progressLimit(preset, now);
  let bytes = 0;
  for (const file of preset.files) {
    if (!(await isWhole(staging, file))) {
      if (isDue(bytes)) log.info({ file: file.path, bytes: file.bytes }, "the file is being fetched");
      origins.push(await sources.fetch(file));
    }
    bytes += file.bytes ?? 0;
  }
  return origins;
}

/**
 * Returns a function that decides after each file whether to report the file. Most files are small, so the
 * installation reports only some files. The argument of the function is the number of bytes of all files so
 * far.
 */
function progressLimit({ files }: InstallablePreset, now: () => number): (bytes: number) => boolean {
  const total = knownBytes(files);
  let last: { readonly bytes: number; readonly atMs: number } | undefined;
  return (bytes) => {
    const atMs = now();
    const isDue =
      last === undefined || bytes - last.bytes >= reportedShare * total || atMs - last.atMs >= reportEveryMs;
    if (isDue) last = { bytes, atMs };
    return isDue;
  };
}

function knownBytes(files: InstallablePreset["files"]): number {
  return files.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}

async function requireDiskSpace({ files, title, engine }: InstallablePreset, folder: string): Promise<void> {
  const factor = engine === "kokoro" ? rewrittenSpaceFactor : diskSpaceFactor;
  const needed = factor * knownBytes(files);
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= needed) return;
  throw new FetchFailure(
    `${title} needs ${megabytes(needed)} of disk space during the installation, and ${folder} has ${megabytes(free)}; free some space`,
    { problem: "DiskFull" },
  );
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}

/** Adds the license texts and the notice, and the files of the model that are part of this repository. */
async function addOwnFiles(preset: InstallablePreset, staging: string): Promise<void> {
  for (const name of preset.copies) {
    await copyFile(fileURLToPath(new URL(name, presetFolder(preset))), join(staging, name));
  }
  if (!preset.license.name.startsWith("Apache-2.0")) return;
  await copyFile(fileURLToPath(apacheLicense), join(staging, "LICENSE-Apache-2.0"));
}

/**
 * Rewrites the graph of Kokoro. If the rewrite fails, the model uses the original graph.
 * @returns undefined if the engine does not rewrite graphs.
 */
async function tryRewrite(
  preset: InstallablePreset,
  staging: string,
  { signal, log, rewrite = rewriteGraph }: InstallOptions,
): Promise<RewriteOutcome | undefined> {
  const { manifest } = preset;
  if (manifest.kind !== "kokoro") return undefined;
  log.info({}, "the graph is being rewritten and compared with the original graph");
  const vocabulary = await readFile(join(staging, manifest.vocabulary), "utf8");
  const spec = {
    kind: "kokoro",
    model: join(staging, manifest.model),
    sha256: manifest.sha256,
    rate: 24_000,
    runtime: { providers: ["cpu"], threads: 1, threadsAlone: 1 },
    ids: readVocabulary(manifest.vocabulary, vocabulary),
    voices: manifest.voices.map(({ style, espeak }) => ({ style: join(staging, style), espeak })),
  } as const;
  const parts = {
    front: join(staging, partNames.front),
    generator: join(staging, partNames.generator),
    means: join(staging, partNames.means),
  };
  const styles = manifest.voices.map(({ style }) => style);
  let outcome: RewriteOutcome;
  try {
    const target = join(staging, rewrittenName);
    outcome = withStyles(await rewrite({ spec, target, parts }, signal), styles);
  } catch (error) {
    signal.throwIfAborted();
    outcome = {
      kind: "none",
      reason: `the graph could not be rewritten: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
  await removeUnused(staging, outcome);
  return outcome;
}

function withStyles(outcome: RewriteOutcome, styles: readonly string[]): RewriteOutcome {
  if (outcome.kind !== "rewritten" || outcome.windows?.kind !== "windows") return outcome;
  return { ...outcome, windows: { ...outcome.windows, styles } };
}

/** Removes the files of a rewrite that ended early, in this attempt or in an earlier one. */
async function removeUnused(staging: string, outcome: RewriteOutcome): Promise<void> {
  const isRewritten = outcome.kind === "rewritten";
  const parts = Object.values(partNames);
  const unused = isRewritten ? [] : [rewrittenName];
  if (!isRewritten || outcome.windows?.kind !== "windows") unused.push(...parts);
  const temporary = [rewrittenName, ...parts].map((name) => `${name}.new`);
  for (const name of [...unused, ...temporary]) await rm(join(staging, name), { force: true });
}

/**
 * Returns the manifest of the installed folder.
 * @param record the content of the file `installed.json`.
 */
function manifestText(
  { manifest, files }: InstallablePreset,
  rewriting: RewriteOutcome | undefined,
  record: string,
): string {
  if (manifest.kind === "tokens" || manifest.kind === "audio") {
    const digests = files.map(({ path, sha256 }) => [path, sha256] as const);
    // The tier rejects a folder with a file that the manifest does not list.
    const own = [installationName, createHash("sha256").update(record).digest("hex")] as const;
    return JSON.stringify({ ...manifest, sha256: Object.fromEntries([...digests, own]) }, null, 2);
  }
  if (rewriting?.kind !== "rewritten" || manifest.kind !== "kokoro") return JSON.stringify(manifest, null, 2);
  const { sha256, weights } = rewriting;
  const windows = windowsField(manifest, rewriting.windows);
  const rewritten = { model: rewrittenName, sha256, weights, ...(windows !== undefined && { windows }) };
  return JSON.stringify({ ...manifest, rewritten }, null, 2);
}

/** Returns the manifest's field `windows`. The value is undefined if the installation did not try windows. */
function windowsField({ voices }: KokoroManifest, windows: WindowsOutcome | undefined) {
  if (windows?.kind !== "windows") return windows && false;
  // A later release may have other voices, but the rows of means do not change.
  const { sha256, channels, styles = voices.map(({ style }) => style) } = windows;
  const fileOf = (part: keyof typeof partNames) => ({ path: partNames[part], sha256: sha256[part] });
  return {
    front: fileOf("front"),
    generator: fileOf("generator"),
    means: fileOf("means"),
    channels,
    styles,
  };
}
