import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { rejectVllmArguments } from "../../../../config/contract/vllm-flags.ts";
import { voicesOf } from "../../../../config/contract/voices.ts";
import { findAudioProblem, findTokensProblem } from "./manifest-rules.ts";

/**
 * The schema of `manifest.json`, which describes a model for arcana. docs/reference/model-manifest.md
 * explains each field.
 */

const text = Type.String({ minLength: 1, maxLength: 200 });
const tokenId = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });
const tokenIds = Type.Array(tokenId, { maxItems: 64 });
/** A path inside the manifest's folder, without a leading slash and without `..`. */
const path = Type.String({ pattern: "^(?!\\.{1,2}/|/)(?!.*/\\.{1,2}/)[^\\\\\\0]{1,255}$" });
const frames = Type.Integer({ minimum: 0, maximum: 64 });

const vllm = Type.Object({ args: Type.Optional(Type.Array(text, { maxItems: 64 })) });
const prompt = Type.Object({
  template: Type.String({ pattern: "\\{text\\}", maxLength: 2000 }),
  pre: tokenIds,
  post: tokenIds,
  /** The text that the model reads: written words, or phonemes in IPA from eSpeak NG. */
  frontend: Type.Optional(Type.Enum(["text", "phonemes"])),
  /** The voice of eSpeak NG that provides the phonemes. */
  espeak: Type.Optional(Type.String({ pattern: "^[a-zA-Z0-9+_-]{2,40}$" })),
  reference: Type.Optional(
    Type.Object({
      /** A turn of its own before the prompt, or the start of the speech that the model continues. */
      placement: Type.Enum(["turn", "continuation"]),
      /** The tokens after the codes of a turn. */
      end: Type.Optional(tokenIds),
    }),
  ),
});
/** A recording of a voice, as its words and as codes of the codec. */
const reference = Type.Object({
  text: Type.String({ minLength: 1, maxLength: 2000 }),
  codes: Type.Array(Type.Integer({ minimum: 0, maximum: 2 ** 20 }), { minItems: 1, maxItems: 32_768 }),
});
const voice = Type.Object({
  name: text,
  description: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
  reference: Type.Optional(reference),
});
/** The defaults of the sampling options, for requests that do not set the options. */
const sampling = Type.Object({
  repetitionPenalty: Type.Optional(Type.Number({ minimum: 0.1, maximum: 10 })),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  topP: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
  maxTokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
});
const codec = Type.Object({
  onnx: path,
  rate: Type.Integer({ minimum: 4000, maximum: 192_000 }),
  frameSamples: Type.Integer({ minimum: 1, maximum: 100_000 }),
  base: tokenId,
  codebook: Type.Integer({ minimum: 2, maximum: 2 ** 20 }),
  slots: Type.Array(Type.Integer({ minimum: 0, maximum: 63 }), { minItems: 1, maxItems: 128 }),
  inputs: Type.Array(text, { minItems: 1, maxItems: 64 }),
  output: text,
  left: frames,
  right: frames,
  hops: Type.Array(Type.Integer({ minimum: 1, maximum: 64 }), { minItems: 1, maxItems: 16 }),
});
const common = {
  license: text,
  /** The digest of every file of the folder. */
  sha256: Type.Record(path, Type.String({ pattern: "^[0-9a-f]{64}$" })),
  /** The model's voice for each voice of arcana: its name, or an object with its name. */
  voices: Type.Record(text, Type.Union([text, voice])),
  sampling: Type.Optional(sampling),
  vllm: Type.Optional(vllm),
};

const schemas = {
  tokens: Type.Object({
    kind: Type.Literal("tokens"),
    ...common,
    prompt,
    stop: Type.Array(tokenId, { minItems: 1, maxItems: 64 }),
    /** The token after which the model writes speech. Without it, the speech follows the prompt. */
    startAfter: Type.Optional(tokenId),
    context: Type.Integer({ minimum: 64, maximum: 10_000_000 }),
    codec,
  }),
  audio: Type.Object({
    kind: Type.Literal("audio"),
    ...common,
    rate: Type.Integer({ minimum: 4000, maximum: 192_000 }),
  }),
};

export type TokensManifest = Static<typeof schemas.tokens>;
export type AudioManifest = Static<typeof schemas.audio>;
export type ArcanaManifest = TokensManifest | AudioManifest;
export type CodecManifest = TokensManifest["codec"];
/** The model's voice of a voice of arcana. */
export type ModelVoice = Static<typeof voice>;

export const manifestName = "manifest.json";

const validators = { tokens: Compile(schemas.tokens), audio: Compile(schemas.audio) };
const kinds = Object.keys(schemas);

/**
 * Reads and validates a manifest.
 * @throws Error that names the field, its value and the allowed values.
 */
export function readArcanaManifest(json: string): ArcanaManifest {
  const value = parse(json);
  const { kind } = value;
  if (kind !== "tokens" && kind !== "audio") {
    throw fieldError("/kind", `must be ${kinds.join(" or ")}; it is ${quoted(kind)}`);
  }
  rejectUnknown("", value, schemas[kind].properties);
  const error = validators[kind].Errors(value)[0];
  if (error)
    throw fieldError(
      error.instancePath,
      `${error.message}; it is ${quoted(valueAt(value, error.instancePath))}`,
    );
  const manifest = value as unknown as ArcanaManifest;
  if (manifest.vllm) requireArguments(manifest.vllm);
  if (manifest.sampling) rejectUnknown("/sampling", manifest.sampling, sampling.properties);
  requireVoices(manifest.voices);
  const problem = manifest.kind === "tokens" ? findTokensProblem(manifest) : findAudioProblem(manifest);
  if (problem) throw fieldError(problem.field, problem.message);
  if (manifest.kind === "tokens") {
    rejectUnknown("/prompt", manifest.prompt, prompt.properties);
    rejectUnknown("/codec", manifest.codec, codec.properties);
  }
  return manifest;
}

/** Returns the model's voice for a voice of arcana. */
export function modelVoice({ voices }: Pick<ArcanaManifest, "voices">, id: string): ModelVoice {
  const listed = voices[id] ?? id;
  return typeof listed === "string" ? { name: listed } : listed;
}

/** Returns the voice for health checks and measurements. */
export function firstVoice(manifest: Pick<ArcanaManifest, "voices">): ModelVoice {
  return modelVoice(manifest, Object.keys(manifest.voices)[0] ?? "");
}

function requireArguments(settings: Static<typeof vllm>): void {
  rejectUnknown("/vllm", settings, vllm.properties);
  const rejected = rejectVllmArguments(settings.args ?? []);
  if (rejected !== undefined) throw fieldError("/vllm/args", rejected);
}

/** Requires a name for every voice of arcana, because the catalogue offers all of them. */
function requireVoices(voices: ArcanaManifest["voices"]): void {
  for (const [id, listed] of Object.entries(voices)) {
    if (typeof listed === "string") continue;
    rejectUnknown(`/voices/${id}`, listed, voice.properties);
    if (listed.reference) rejectUnknown(`/voices/${id}/reference`, listed.reference, reference.properties);
  }
  const missing = voicesOf("arcana").find(({ id }) => voices[id] === undefined);
  if (missing)
    throw fieldError(
      "/voices",
      `must name the model's voice for each voice of arcana; ${missing.id} is missing`,
    );
}

function parse(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new Error(`${manifestName}: is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new Error(`${manifestName}: must be a JSON object`);
}

/** Rejects unknown fields, because a misspelt field would otherwise be ignored. */
function rejectUnknown(parent: string, value: object, properties: object): void {
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(properties, name));
  if (unknown === undefined) return;
  throw fieldError(
    `${parent}/${unknown}`,
    `is not a field of the manifest; the allowed fields are ${Object.keys(properties).join(", ")}`,
  );
}

function fieldError(pointer: string, message: string): Error {
  return new Error(`${manifestName}: ${pointer} ${message}`);
}

function valueAt(value: unknown, pointer: string): unknown {
  let current = value;
  for (const step of pointer.split("/").slice(1))
    current = (current as Record<string, unknown> | undefined)?.[step];
  return current;
}

function quoted(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value).slice(0, 80);
}
