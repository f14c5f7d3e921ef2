import { Compile } from "typebox/compile";
import { rejectVllmArguments } from "../../../../config/contract/vllm-flags.ts";
import { voicesOf } from "../../../../config/contract/voices.ts";
import { findAudioProblem, findTokensProblem } from "./manifest-rules.ts";
import { type ArcanaManifest, type ModelVoice, manifestParts, manifestSchemas } from "./manifest-schema.ts";

const { vllm, prompt, reference, voice, sampling, codec } = manifestParts;

export const manifestName = "manifest.json";

const validators = { tokens: Compile(manifestSchemas.tokens), audio: Compile(manifestSchemas.audio) };
const kinds = Object.keys(manifestSchemas);

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
  rejectUnknown("", value, manifestSchemas[kind].properties);
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
    if (manifest.prompt.reference)
      rejectUnknown("/prompt/reference", manifest.prompt.reference, prompt.properties.reference.properties);
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

function requireArguments(settings: NonNullable<ArcanaManifest["vllm"]>): void {
  rejectUnknown("/vllm", settings, vllm.properties);
  const rejected = rejectVllmArguments(settings.args ?? []);
  if (rejected !== undefined) throw fieldError("/vllm/args", rejected);
}

/** Requires a name for every voice of arcana, because the catalogue offers every voice. */
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
