import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { env as names } from "../../config/contract/names.ts";
import { readIfExists } from "../../lib/read-if-exists.ts";
import type { RewriteOutcome } from "../engine/rewriting/rewrite.ts";
import type { KnownFile } from "./resolve.ts";

/** The record of an installed preset, which is stored in the preset's folder. */
export interface Installation {
  readonly preset: string;
  /** The time of the installation, in the format of RFC 3339. */
  readonly installedAt: string;
  /** The source of the preset's first file, which is the largest file. */
  readonly source: string;
  /** The outcome of the rewrite of the graph. The value is absent if the engine does not rewrite graphs. */
  readonly rewriting?: RewriteOutcome;
}

/** The name of a preset, which is also the name of its installed folder. */
interface Named {
  readonly id: string;
}

export const installationName = "installed.json";

/**
 * Returns the folder of installed presets: `SVC_TTS_MODELS_DIR`, or a folder in the user's data folder (XDG
 * Base Directory).
 */
export function modelsFolder(env: Readonly<Record<string, string | undefined>>): string {
  const configured = env[names.modelsDir];
  if (configured) return configured;
  const { HOME = homedir(), XDG_DATA_HOME = "" } = env;
  const data = isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(HOME, ".local", "share");
  return join(data, "svc-tts", "models");
}

/** Returns the record of a preset, or undefined if the preset is not installed. */
export async function readInstallation(folder: string, { id }: Named): Promise<Installation | undefined> {
  const text = await readIfExists(readFile(join(folder, id, installationName), "utf8"));
  return text === undefined ? undefined : (JSON.parse(text) as Installation);
}

/** Returns whether a file exists with the expected content. */
export async function isWhole(folder: string, { path, bytes, sha256 }: KnownFile): Promise<boolean> {
  const file = join(folder, path);
  const fileState = await readIfExists(stat(file));
  return (
    fileState !== undefined &&
    (bytes ?? fileState.size) === fileState.size &&
    (await digestOf(file)) === sha256
  );
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer);
  return hash.digest("hex");
}

/**
 * Removes an installed preset.
 * @returns false if the preset was not installed.
 */
export async function removePreset(folder: string, { id }: Named): Promise<boolean> {
  const removed = join(folder, `.${id}.removed`);
  await rm(removed, { recursive: true, force: true });
  // The rename is atomic. A server that reads the folder finds all files or none.
  const wasInstalled = (await readIfExists(rename(join(folder, id), removed).then(() => true))) ?? false;
  await rm(removed, { recursive: true, force: true });
  await rm(join(folder, stagingName(id)), { recursive: true, force: true });
  return wasInstalled;
}

/**
 * Returns the name of the folder for an incomplete installation. The folder is hidden, so servers ignore its
 * content.
 */
export function stagingName(id: string): string {
  return `.${id}.partial`;
}
