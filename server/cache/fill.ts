import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { CachePlan, CachePlanSource, CacheResult } from "../../config/contract/model-cache.ts";
import { sleep, systemClock } from "../../lib/clock.ts";
import { readIfExists } from "../../lib/read-if-exists.ts";
import {
  type DownloadLog,
  type DownloadOptions,
  download,
  stateFolder,
  statePaths,
} from "../fetch/download.ts";
import { FetchFailure, redactUrl } from "../fetch/failure.ts";
import { withLock } from "../fetch/lock.ts";
import { credentialVariables, type FileToFetch, planOf } from "../fetch/plan.ts";
import { parseSource } from "../fetch/source.ts";
import { installPreset } from "../presets/install.ts";
import { stagingName } from "../presets/installed.ts";
import { loadPreset, presetNames } from "../presets/preset.ts";
import { type InstallablePreset, needsDigests, withDigests } from "../presets/resolve.ts";
import {
  type CacheContents,
  mergeContents,
  readContents,
  readOtherContents,
  writeContents,
} from "./contents.ts";
import { requireLinksInside } from "./links.ts";
import type { FillProgress } from "./progress.ts";
import { claimPreset, isBelow, removeBlocking, removeSurplus } from "./removal.ts";

export interface FillOptions extends Pick<DownloadOptions, "tries" | "pauseMs"> {
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: DownloadLog;
  readonly progress: FillProgress;
  readonly signal: AbortSignal;
  /** Returns the time in milliseconds since the epoch. */
  readonly now: () => number;
  readonly lockBeatMs?: number;
  readonly lockStaleMs?: number;
}

/** The error for a preset that this version of the server does not have. */
export class PresetUnknown extends FetchFailure {}

type Filled = Omit<Extract<CacheResult, { outcome: "filled" }>, "outcome">;

/** The interval at which the size of a preset that is being installed is measured. */
const measureEveryMs = 500;

/**
 * Fetches the missing files of a plan, verifies them, and then removes the files of earlier plans that the
 * plan does not name. The function continues an interrupted attempt with the existing files. Only one process
 * at a time fills a folder.
 * @throws FetchFailure if the plan is invalid, or a file cannot be fetched.
 */
export async function fillCache(plan: CachePlan, options: FillOptions): Promise<Filled> {
  const { owner } = plan;
  const { folder, log, signal, lockBeatMs: beatMs, lockStaleMs: staleMs } = options;
  const preset = plan.preset === undefined ? undefined : presetOf(plan.preset, plan.acceptLicense ?? false);
  const lock = {
    signal,
    onWaiting: () =>
      log.info({}, "another pod is fetching into this cache; waiting until the pod has finished"),
    ...(beatMs !== undefined && { beatMs }),
    ...(staleMs !== undefined && { staleMs }),
  };
  await mkdir(folder, { recursive: true });
  await requireLinksInside(folder, { paths: [], folders: [stateFolder] });
  return withLock(join(folder, stateFolder, "lock"), lock, async (lockSignal) => {
    const held = { ...options, signal: lockSignal };
    const files = await filesOf(plan.sources ?? [], held);
    requireOneSource(files, preset);
    const wanted: CacheContents = {
      files: files.map(({ path }) => path),
      presets: preset === undefined ? [] : [preset.id],
    };
    const known = mergeContents(await readContents(folder, owner, log), wanted);
    // The record is written first, so that files of an interrupted attempt are removed later.
    await writeContents(folder, owner, known);
    const kept = mergeContents(wanted, await readOtherContents(folder, owner, log));
    await requireLinksInside(folder, { paths: known.files, folders: known.presets.flatMap(foldersOfPreset) });
    await removeBlocking(folder, known, kept);
    if (preset !== undefined) await claimPreset(folder, preset.id);
    const fetched =
      (await fetchFiles(files, held)) + (preset === undefined ? 0 : await fetchPreset(preset, held));
    const removed = await removeSurplus(folder, known, kept);
    await writeContents(folder, owner, wanted);
    const { files: count, bytes } = options.progress.report;
    return { files: count, bytes, fetched, removed };
  });
}

function presetOf(id: string, isAccepted: boolean): InstallablePreset {
  const names = presetNames();
  if (!names.includes(id))
    throw new PresetUnknown(
      `the preset ${id} does not exist in this version of the server, which has: ${names.join(", ")}; change spec.preset, or upgrade the operator`,
    );
  const preset = loadPreset(id);
  const { name, url } = preset.license;
  if (!preset.license.commercial && !isAccepted)
    throw new FetchFailure(
      `the license of ${id} does not allow commercial use: ${name} (${url}); read it, and set spec.acceptLicense if you comply with it`,
    );
  if (needsDigests(preset))
    throw new FetchFailure(
      `svc-tts does not know the digests of all files of ${id}; name its files with sha256 in spec.sources instead of spec.preset`,
    );
  return withDigests(preset, {});
}

/** Returns the folders that the installation of a preset writes to. */
function foldersOfPreset(id: string): string[] {
  return [id, stagingName(id)];
}

interface PlannedFile extends FileToFetch {
  readonly source: string;
}

async function filesOf(sources: readonly CachePlanSource[], options: FillOptions): Promise<PlannedFile[]> {
  const files: PlannedFile[] = [];
  for (const { url, path, sha256, endpoint, credentials = "" } of sources) {
    const { env, now, signal } = options;
    const read = credentialVariables.map((name) => [name, env[`${credentials}${name}`] || undefined]);
    const found = await planOf(parseSource(url), {
      endpoint,
      path,
      sha256,
      credentials: Object.fromEntries(read.filter(([, value]) => value !== undefined)),
      now,
      signal,
    });
    files.push(...found.map((file) => ({ ...file, source: url })));
  }
  return files;
}

function requireOneSource(files: readonly PlannedFile[], preset: InstallablePreset | undefined): void {
  const inPreset = files.find(({ path }) => preset && (path === preset.id || isBelow(path, preset.id)));
  if (inPreset !== undefined)
    throw new FetchFailure(
      `${inPreset.path} of ${redactUrl(inPreset.url)} is in the folder of the preset ${preset?.id}; set another path for the source`,
    );
  for (const [path, [first, second]] of Map.groupBy(files, (file) => file.path)) {
    if (first === undefined || second === undefined) continue;
    throw new FetchFailure(
      `${path} comes from two sources, ${redactUrl(first.url)} and ${redactUrl(second.url)}; set path for one of them`,
    );
  }
}

async function fetchFiles(files: readonly PlannedFile[], options: FillOptions): Promise<number> {
  const { folder, log, signal, progress } = options;
  for (const { path, bytes } of files) progress.expect(path, bytes);
  let fetched = 0;
  for (const file of files) {
    const { path } = file;
    // The volume may have changed during the download of other files.
    await requireLinksInside(folder, { paths: [path, ...statePaths(path)], folders: [] });
    const outcome = await download(file, {
      folder,
      log,
      signal,
      ...(options.tries !== undefined && { tries: options.tries }),
      ...(options.pauseMs !== undefined && { pauseMs: options.pauseMs }),
      onBytes: (bytes, total) => progress.received(path, bytes, total),
    });
    if (outcome === "fetched") fetched++;
    const { size } = await stat(join(folder, path));
    progress.complete(path, size);
    log.info(
      { file: path },
      outcome === "there" ? "the file already exists" : "the file was fetched and verified",
    );
  }
  return fetched;
}

/** Installs a preset, and measures the size of its files, because the installation reports only whole files. */
async function fetchPreset(preset: InstallablePreset, options: FillOptions): Promise<number> {
  const { folder, env, log, signal, now, progress } = options;
  const total = sizeOfPreset(preset);
  progress.expect(preset.id, total);
  const ended = new AbortController();
  const measuring = measure(preset, options, ended.signal);
  try {
    const { isNew } = await installPreset(preset, { folder, env, log, signal, now, mirror: undefined });
    progress.complete(preset.id, total);
    return isNew ? preset.files.length : 0;
  } finally {
    ended.abort();
    await measuring;
  }
}

function sizeOfPreset({ files }: InstallablePreset): number {
  return files.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}

async function measure(
  preset: InstallablePreset,
  { folder, progress }: FillOptions,
  ended: AbortSignal,
): Promise<void> {
  const staging = join(folder, stagingName(preset.id));
  const total = sizeOfPreset(preset);
  while (!ended.aborted) {
    let bytes = 0;
    for (const { path } of preset.files) bytes += await sizeOf(staging, path);
    if (!ended.aborted) progress.received(preset.id, Math.min(bytes, total), total);
    await sleep(systemClock, measureEveryMs, ended);
  }
}

async function sizeOf(folder: string, path: string): Promise<number> {
  const whole = await readIfExists(stat(join(folder, path)));
  if (whole !== undefined) return whole.size;
  return (await readIfExists(stat(join(folder, stateFolder, `${path}.partial`))))?.size ?? 0;
}
