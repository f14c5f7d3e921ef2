import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { rejectVllmArguments } from "../../../../config/contract/vllm-flags.ts";
import { voicesOf } from "../../../../config/contract/voices.ts";

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
  /** The model's name of each voice of arcana. */
  voices: Type.Record(text, text),
  vllm: Type.Optional(vllm),
};

const schemas = {
  tokens: Type.Object({
    kind: Type.Literal("tokens"),
    ...common,
    prompt,
    stop: Type.Array(tokenId, { minItems: 1, maxItems: 64 }),
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
  requireVoices(manifest.voices);
  if (manifest.kind === "tokens") requireTokens(manifest);
  return manifest;
}

function requireArguments(settings: Static<typeof vllm>): void {
  rejectUnknown("/vllm", settings, vllm.properties);
  const rejected = rejectVllmArguments(settings.args ?? []);
  if (rejected !== undefined) throw fieldError("/vllm/args", rejected);
}

/** Requires a name for every voice of arcana, because the catalogue offers all of them. */
function requireVoices(voices: Readonly<Record<string, string>>): void {
  const missing = voicesOf("arcana").find(({ id }) => voices[id] === undefined);
  if (missing)
    throw fieldError(
      "/voices",
      `must name the model's voice for each voice of arcana; ${missing.id} is missing`,
    );
}

function requireTokens({ prompt: promptFields, codec: codecFields, stop, context }: TokensManifest): void {
  rejectUnknown("/prompt", promptFields, prompt.properties);
  rejectUnknown("/codec", codecFields, codec.properties);
  const input = codecFields.slots.find((slot) => slot >= codecFields.inputs.length);
  if (input !== undefined) {
    throw fieldError(
      "/codec/slots",
      `names input ${input}, and /codec/inputs has only ${codecFields.inputs.length} inputs`,
    );
  }
  const unused = codecFields.inputs.findIndex((_, i) => !codecFields.slots.includes(i));
  if (unused >= 0) throw fieldError("/codec/slots", `must name every input; input ${unused} is missing`);
  const end = codecFields.base + codecFields.slots.length * codecFields.codebook;
  const inside = stop.find((id) => id >= codecFields.base && id < end);
  if (inside !== undefined)
    throw fieldError(
      "/stop",
      `must not contain ${inside}, which is a code of the codec (${codecFields.base} to ${end - 1})`,
    );
  if (context <= promptFields.pre.length + promptFields.post.length + codecFields.slots.length) {
    throw fieldError(
      "/context",
      `is ${context}, which leaves no tokens for speech after the prompt; set a larger context`,
    );
  }
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
