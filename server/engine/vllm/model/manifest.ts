import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { rejectVllmArguments } from "../../../../config/contract/vllm-flags.ts";
import { voicesOf } from "../../../../config/contract/voices.ts";

/**
 * The description of a model for arcana: `manifest.json` next to its files. docs/reference/model-manifest.md
 * explains each field.
 */

const text = Type.String({ minLength: 1, maxLength: 200 });
const tokenId = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });
const tokenIds = Type.Array(tokenId, { maxItems: 64 });
/** A path inside the manifest's folder: no leading slash, no parent folder. */
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
  /** Digests of every file of the folder. */
  sha256: Type.Record(path, Type.String({ pattern: "^[0-9a-f]{64}$" })),
  /** Each voice of arcana, and the model's name of it. */
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

/** @throws Error that names the field, its value and the allowed values. */
export function readArcanaManifest(json: string): ArcanaManifest {
  const value = parse(json);
  const { kind } = value;
  if (kind !== "tokens" && kind !== "audio") {
    throw wrong("/kind", `must be ${kinds.join(" or ")}; it is ${shown(kind)}`);
  }
  refuseUnknown("", value, schemas[kind].properties);
  const error = validators[kind].Errors(value)[0];
  if (error)
    throw wrong(error.instancePath, `${error.message}; it is ${shown(at(value, error.instancePath))}`);
  const manifest = value as unknown as ArcanaManifest;
  if (manifest.vllm) requireArguments(manifest.vllm);
  requireVoices(manifest.voices);
  if (manifest.kind === "tokens") requireTokens(manifest);
  return manifest;
}

function requireArguments(given: Static<typeof vllm>): void {
  refuseUnknown("/vllm", given, vllm.properties);
  const rejected = rejectVllmArguments(given.args ?? []);
  if (rejected !== undefined) throw wrong("/vllm/args", rejected);
}

/** The catalogue offers all of arcana's voices, so each needs its own, without a silent replacement. */
function requireVoices(voices: Readonly<Record<string, string>>): void {
  const missing = voicesOf("arcana").find(({ id }) => voices[id] === undefined);
  if (missing)
    throw wrong("/voices", `must name the model's voice for each voice of arcana; ${missing.id} is missing`);
}

function requireTokens({ prompt: asked, codec: made, stop, context }: TokensManifest): void {
  refuseUnknown("/prompt", asked, prompt.properties);
  refuseUnknown("/codec", made, codec.properties);
  const input = made.slots.find((slot) => slot >= made.inputs.length);
  if (input !== undefined) {
    throw wrong("/codec/slots", `names input ${input}, but there are ${made.inputs.length} inputs`);
  }
  const unused = made.inputs.findIndex((_, i) => !made.slots.includes(i));
  if (unused >= 0) throw wrong("/codec/slots", `never names input ${unused}`);
  const end = made.base + made.slots.length * made.codebook;
  const inside = stop.find((id) => id >= made.base && id < end);
  if (inside !== undefined)
    throw wrong("/stop", `${inside} is a code of the codec, ${made.base} to ${end - 1}`);
  if (context <= asked.pre.length + asked.post.length + made.slots.length) {
    throw wrong("/context", "leaves no tokens for speech");
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

/** A misspelt field would otherwise be ignored silently. */
function refuseUnknown(place: string, value: object, known: object): void {
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw wrong(
    `${place}/${unknown}`,
    `is not a field of a manifest; the fields are ${Object.keys(known).join(", ")}`,
  );
}

function wrong(pointer: string, message: string): Error {
  return new Error(`${manifestName}: ${pointer} ${message}`);
}

function at(value: unknown, pointer: string): unknown {
  let found = value;
  for (const step of pointer.split("/").slice(1))
    found = (found as Record<string, unknown> | undefined)?.[step];
  return found;
}

function shown(value: unknown): string {
  return value === undefined ? "absent" : JSON.stringify(value).slice(0, 80);
}
