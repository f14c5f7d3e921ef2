import Type, { type Static } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { modelIds } from "../../../config/contract/models.ts";

/**
 * The schema of the manifest that an administrator writes for a model. docs/reference/voice-manifest.md
 * explains each field.
 */

const id = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,63}$" });
/** A path inside the manifest's folder, without a leading slash and without `..`. */
const path = Type.String({ pattern: "^(?!\\.{1,2}/|/)(?!.*/\\.{1,2}/)[^\\\\\\0]{1,255}$" });
const common = {
  model: path,
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  license: Type.String({ minLength: 1, maxLength: 200 }),
};
const checkedFile = Type.Object({ path, sha256: common.sha256 });
/** `false` means that the installation did not accept windows. */
const windows = Type.Union([
  Type.Literal(false),
  Type.Object({
    front: checkedFile,
    generator: checkedFile,
    means: checkedFile,
    channels: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    styles: Type.Array(path, { minItems: 1, maxItems: 200, uniqueItems: true }),
  }),
]);
const voice = {
  id,
  gender: Type.Enum(["female", "male", "neutral"]),
  models: Type.Optional(Type.Array(Type.Enum([...modelIds]), { minItems: 1, uniqueItems: true })),
  replaces: Type.Optional(Type.Array(id, { minItems: 1, maxItems: 20, uniqueItems: true })),
  mayReplace: Type.Optional(Type.Array(id, { minItems: 1, maxItems: 20, uniqueItems: true })),
};
const language = Type.String({ pattern: "^[a-z]{3}$" });
const espeak = Type.String({ pattern: "^[a-zA-Z0-9+_-]{2,40}$" });

const schemas = {
  piper: Type.Object({
    kind: Type.Literal("piper"),
    ...common,
    config: Type.Optional(path),
    voices: Type.Array(
      Type.Object({
        ...voice,
        language: Type.Optional(language),
        speaker: Type.Optional(Type.Union([Type.String({ maxLength: 200 }), Type.Integer({ minimum: 0 })])),
      }),
      { minItems: 1, maxItems: 200 },
    ),
  }),
  kokoro: Type.Object({
    kind: Type.Literal("kokoro"),
    ...common,
    vocabulary: path,
    rewritten: Type.Optional(
      Type.Object({
        model: path,
        sha256: common.sha256,
        weights: Type.Enum(["int8", "uint8"]),
        windows: Type.Optional(windows),
      }),
    ),
    voices: Type.Array(Type.Object({ ...voice, language, espeak, style: path }), {
      minItems: 1,
      maxItems: 200,
    }),
  }),
};

export type PiperManifest = Static<typeof schemas.piper>;
export type KokoroManifest = Static<typeof schemas.kokoro>;
export type VoiceManifest = PiperManifest | KokoroManifest;

/** A problem with a mounted voice, with the file, the field, and the solution in the message. */
export class VoiceProblem extends Error {
  readonly file: string;
  readonly field: string | undefined;

  constructor(
    place: { readonly file: string; readonly field?: string },
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "VoiceProblem";
    this.file = place.file;
    this.field = place.field;
  }
}

/**
 * The manifest of a model that vLLM serves (server/engine/vllm/model/manifest.ts), which has no mounted
 * voices.
 */
export class GeneratorManifest extends VoiceProblem {}

const generatorKinds: readonly unknown[] = ["tokens", "audio"];

const validators: { readonly [Kind in VoiceManifest["kind"]]: Validator } = {
  piper: Compile(schemas.piper),
  kokoro: Compile(schemas.kokoro),
};
const kinds = Object.keys(schemas);

/**
 * Reads and validates a manifest.
 * @throws VoiceProblem that names the file and the field.
 */
export function readVoiceManifest(file: string, text: string): VoiceManifest {
  const value = readJson(file, text);
  const kind = value.kind;
  if (kind !== "piper" && kind !== "kokoro") {
    const Problem = generatorKinds.includes(kind) ? GeneratorManifest : VoiceProblem;
    throw new Problem({ file, field: "/kind" }, `must be one of ${kinds.join(", ")}; it is ${quoted(kind)}`);
  }
  refuseUnknown(file, "", value, schemas[kind].properties);
  const error = validators[kind].Errors(value)[0];
  if (error)
    throw new VoiceProblem(
      { file, field: error.instancePath },
      describeError(error.message, value, error.instancePath),
    );
  const manifest = value as unknown as VoiceManifest;
  for (const [i, listed] of manifest.voices.entries()) {
    refuseUnknown(file, `/voices/${i}`, listed, schemas[kind].properties.voices.items.properties);
  }
  return manifest;
}

/** Rejects unknown fields, because a misspelt field would otherwise be ignored. */
function refuseUnknown(file: string, place: string, value: object, properties: object): void {
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(properties, name));
  if (unknown === undefined) return;
  throw new VoiceProblem(
    { file, field: `${place}/${unknown}` },
    `is not a field of the manifest; the allowed fields are ${Object.keys(properties).join(", ")}`,
  );
}

function describeError(message: string, value: unknown, pointer: string): string {
  let at: unknown = value;
  for (const step of pointer.split("/").slice(1)) at = (at as Record<string, unknown> | undefined)?.[step];
  return typeof at === "object" ? message : `${message}; it is ${quoted(at)}`;
}

function quoted(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value).slice(0, 80);
}

function readJson(file: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new VoiceProblem({ file }, `is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new VoiceProblem({ file }, "must be a JSON object");
}

/** The fields of Piper's `voice.onnx.json` that are read. The file may contain more fields. */
const piperConfig = Type.Object({
  audio: Type.Object({ sample_rate: Type.Integer({ minimum: 4000, maximum: 96_000 }) }),
  phoneme_id_map: Type.Record(Type.String(), Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 16 })),
  phoneme_type: Type.Optional(Type.Enum(["espeak", "text"])),
  espeak: Type.Optional(Type.Object({ voice: Type.String() })),
  num_speakers: Type.Optional(Type.Integer({ minimum: 0 })),
  speaker_id_map: Type.Optional(Type.Record(Type.String(), Type.Integer({ minimum: 0 }))),
  default_speaker_id: Type.Optional(Type.Integer({ minimum: 0 })),
  inference: Type.Optional(
    Type.Object({
      noise_scale: Type.Optional(Type.Number()),
      length_scale: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
      noise_w: Type.Optional(Type.Number()),
    }),
  ),
  language: Type.Optional(Type.Object({ code: Type.String() })),
});
const piperConfigValidator = Compile(piperConfig);

export type PiperConfig = Static<typeof piperConfig>;

/**
 * Reads and validates Piper's configuration file.
 * @throws VoiceProblem that names the file and the field.
 */
export function readPiperConfig(file: string, text: string): PiperConfig {
  const value = readJson(file, text);
  const error = piperConfigValidator.Errors(value)[0];
  if (error)
    throw new VoiceProblem(
      { file, field: error.instancePath },
      describeError(error.message, value, error.instancePath),
    );
  const config = value as unknown as PiperConfig;
  for (const symbol of ["^", "_", "$"]) {
    if (!config.phoneme_id_map[symbol]) {
      throw new VoiceProblem(
        { file, field: `/phoneme_id_map/${symbol}` },
        "is missing; Piper needs the symbol around every line",
      );
    }
  }
  return config;
}

/** Creates the manifest of a Piper model that has no manifest. */
export function manifestOfPiper(model: string, sha256: string): PiperManifest {
  const name = model.slice(model.lastIndexOf("/") + 1).replace(/\.onnx$/, "");
  const normalizedName = name
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "");
  return {
    kind: "piper",
    model,
    sha256,
    license: "not stated",
    voices: [{ id: normalizedName.slice(0, 64) || "voice", gender: "neutral" }],
  };
}

/**
 * Returns the ISO 639-3 code of a Piper voice. The code follows from the language in the configuration file
 * (`en_US`), or from the name of the eSpeak NG voice.
 */
export function languageOfPiper(
  file: string,
  { language: configLanguage, espeak: espeakVoice }: PiperConfig,
): string {
  const code = configLanguage?.code ?? espeakVoice?.voice ?? "";
  const base = code.split(/[-_+]/)[0]?.toLowerCase() ?? "";
  const found = base.length === 3 ? base : iso639Codes[base];
  if (found !== undefined) return found;
  throw new VoiceProblem(
    { file, field: "/language/code" },
    `is ${quoted(code)}, which has no known ISO 639-3 code; write a manifest that states the voice's language`,
  );
}

/** Reads Kokoro's vocabulary from `config.json` (`vocab`) or `tokenizer.json` (`model.vocab`). */
export function readVocabulary(file: string, text: string): Record<string, number> {
  const value = readJson(file, text);
  const inner = (value.model as Record<string, unknown> | undefined)?.vocab;
  const vocabulary = value.vocab ?? inner;
  const entries = Object.entries((vocabulary ?? {}) as object);
  if (entries.length === 0 || entries.some(([, number]) => !Number.isInteger(number))) {
    throw new VoiceProblem({ file, field: "/vocab" }, "must map each symbol to an integer");
  }
  return Object.fromEntries(entries);
}

/** The ISO 639-3 codes of ISO 639-1 codes, for the languages of neural voices. */
const iso639Codes: Readonly<Record<string, string>> = {
  ar: "ara",
  bg: "bul",
  bn: "ben",
  ca: "cat",
  cs: "ces",
  cy: "cym",
  da: "dan",
  de: "deu",
  el: "ell",
  en: "eng",
  es: "spa",
  et: "est",
  eu: "eus",
  fa: "fas",
  fi: "fin",
  fr: "fra",
  ga: "gle",
  he: "heb",
  hi: "hin",
  hr: "hrv",
  hu: "hun",
  hy: "hye",
  id: "ind",
  is: "isl",
  it: "ita",
  ja: "jpn",
  ka: "kat",
  kk: "kaz",
  ko: "kor",
  ku: "kur",
  lb: "ltz",
  lt: "lit",
  lv: "lav",
  ml: "mal",
  ne: "nep",
  nl: "nld",
  no: "nor",
  nb: "nor",
  pl: "pol",
  pt: "por",
  ro: "ron",
  ru: "rus",
  sk: "slk",
  sl: "slv",
  sq: "sqi",
  sr: "srp",
  sv: "swe",
  sw: "swa",
  te: "tel",
  th: "tha",
  tr: "tur",
  uk: "ukr",
  ur: "urd",
  vi: "vie",
  zh: "zho",
};
