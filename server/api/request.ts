import type { TSchema } from "typebox";
import { Value } from "typebox/value";
import { type ModelId, models, type Profile } from "../../config/contract/models.ts";
import type { Voice } from "../../config/contract/voices.ts";
import { Failure, type FieldError } from "../errors.ts";
import type { Invocation } from "../speech.ts";
import { describe, fields, quickest, rateField, slowest } from "./fields.ts";
import { sameLanguage } from "./language.ts";
import { type AudioFormat, formats, rateRule, type StreamVariant, type Variant } from "./variants.ts";

/** A request that may be spoken: every default resolved. */
export interface SpeechRequest {
  readonly invocation: Invocation;
  readonly format: AudioFormat;
  /** Hz of the answer. */
  readonly rate: number;
}

/** What a body is judged against. */
export interface RequestRules {
  readonly variant: Variant;
  readonly profile: Profile;
  readonly voices: readonly Voice[];
}

/** Far more than the words of the longest text that mist takes. */
const maxInlineValues = 500;

type Body = Readonly<Record<string, unknown>>;

/** arcana's defaults (specification 2.1). */
const samplingDefaults = { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 1200 };

/**
 * Judges a body by the specification (parts 2.1 and 8). Unknown fields are ignored, `null` is absent, nothing is
 * clamped; every wrong field is named at once.
 * @throws Failure `invalid_request` with JSON pointers, or `not_acceptable` for a format that is not built.
 */
export function readRequest(body: unknown, rules: RequestRules): SpeechRequest {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Failure("invalid_request", "The body must be a JSON object.", {
      fields: [{ pointer: "", detail: "must be a JSON object" }],
    });
  }
  const reader = new FieldReader(body as Body);
  const request = readFields(reader, rules);
  reader.finish();
  const format = requireBuilt(request.format);
  return { ...request, format };
}

function readFields(reader: FieldReader, rules: RequestRules): SpeechRequest {
  const { variant } = rules;
  const format = variant.form === "json" ? readFormat(reader, variant.formatRequired) : variant.format;
  const modelId = reader.read<ModelId>("modelId", fields.modelId) ?? defaultModel(variant);
  reader.finish(); // the rules of the other fields depend on these two
  const voice = readVoice(reader, modelId, rules.voices);
  const rate = readRate(reader, modelId, format, rules);
  const invocation: Invocation = {
    modelId,
    speaker: voice?.id ?? "",
    lang: voice?.language ?? "",
    text: readText(reader, modelId).toWellFormed(),
    stretch: readStretch(reader, modelId, rules.profile),
    ...readMarkup(reader, modelId),
    sampling: readSampling(reader, modelId),
  };
  return { invocation, format, rate };
}

function defaultModel(variant: Variant): ModelId {
  return variant.form === "stream" ? variant.defaultModel : "mist";
}

function readFormat(reader: FieldReader, required: boolean): AudioFormat {
  const format = reader.read<AudioFormat>("audioFormat", fields.audioFormat);
  if (format === undefined && required && !reader.isWrong("audioFormat")) {
    reader.refuse(
      "audioFormat",
      `is required with Accept: application/json: ${describe(fields.audioFormat)}`,
    );
  }
  return format ?? "wav";
}

function requireBuilt(format: AudioFormat): AudioFormat {
  if (formats[format]) return format;
  throw new Failure(
    "not_acceptable",
    `This server does not write ${format} yet; audioFormat may be ${Object.keys(formats).join(", ")}.`,
  );
}

function readVoice(reader: FieldReader, modelId: ModelId, voices: readonly Voice[]): Voice | undefined {
  const speaker = reader.readRequired<string>("speaker", fields.speaker);
  const lang = reader.read<string>("lang", fields.lang);
  if (speaker === undefined) return undefined;
  const voice = voices.find(({ id, models: speakable }) => id === speaker && speakable.includes(modelId));
  if (!voice) {
    reader.refuse(
      "speaker",
      `must be a voice of ${modelId}, as ${someVoices(modelId, voices)}; ${shown(speaker)} is none. GET /v1/voices lists them`,
    );
  } else if (lang !== undefined && !sameLanguage(lang, voice.language)) {
    reader.refuse(
      "lang",
      `must match the voice: ${voice.id} speaks ${voice.language}, not ${shown(lang)}. Leave lang out, or choose another speaker`,
    );
  }
  return voice;
}

function someVoices(modelId: ModelId, voices: readonly Voice[]): string {
  const ids = voices.filter((voice) => voice.models.includes(modelId)).map((voice) => voice.id);
  return ids.slice(0, 3).join(", ");
}

function readText(reader: FieldReader, modelId: ModelId): string {
  const text = reader.readRequired<string>("text", fields.text);
  if (text === undefined) return "";
  const limit = models[modelId].maxTextLength;
  const length = limit === undefined ? 0 : countCodePoints(text);
  if (limit !== undefined && length > limit) {
    reader.refuse(
      "text",
      `may have ${limit} characters with ${modelId} and has ${length}; split it, or use arcana, which has no limit`,
    );
  }
  if (text.trim() === "") reader.refuse("text", "must hold something to speak");
  return text;
}

function countCodePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function readRate(
  reader: FieldReader,
  modelId: ModelId,
  format: AudioFormat,
  { variant, profile }: RequestRules,
): number {
  const fixed = variant.form === "stream" ? variant.fixedRate : undefined;
  const rule =
    fixed === undefined ? rateRule(modelId, format, profile) : ({ kind: "list", rates: [fixed] } as const);
  const schema = rateField(rule);
  const rate = reader.read<number>("samplingRate", schema);
  if (rate === undefined && format === "ogg" && !reader.isWrong("samplingRate")) {
    reader.refuse("samplingRate", `is required with audioFormat ogg: ${describe(schema)}`);
  }
  return rate ?? fixed ?? variantRate(variant, modelId);
}

function variantRate(variant: Variant, modelId: ModelId): number {
  const stream: StreamVariant | undefined = variant.form === "stream" ? variant : undefined;
  return stream?.defaultRate(modelId) ?? models[modelId].defaultRate;
}

/** Below 1 is faster on mist and slower on arcana (specification 2.1). */
function readStretch(reader: FieldReader, modelId: ModelId, profile: Profile): number {
  const alpha = reader.read<number>("speedAlpha", fields.speedAlpha) ?? 1;
  if (modelId !== "arcana") return alpha;
  if (profile === "cloud" && alpha !== 1) {
    reader.refuse("speedAlpha", "is for self-hosted arcana only; leave it out on the cloud profile");
  }
  return 1 / alpha;
}

type Markup = Pick<
  Invocation,
  "noTextNormalization" | "pauseBetweenBrackets" | "phonemizeBetweenBrackets" | "inlineStretch"
>;

/** Fields of the mist models; arcana ignores them, since both lists share one body. */
function readMarkup(reader: FieldReader, modelId: ModelId): Markup {
  if (modelId === "arcana") {
    return {
      noTextNormalization: false,
      pauseBetweenBrackets: false,
      phonemizeBetweenBrackets: false,
      inlineStretch: [],
    };
  }
  const read = (name: keyof typeof fields) => reader.read<boolean>(name, fields[name]);
  const reduceLatency = read("reduceLatency");
  reader.read("saveOovs", fields.saveOovs);
  return {
    noTextNormalization: read("noTextNormalization") ?? reduceLatency ?? false,
    pauseBetweenBrackets: read("pauseBetweenBrackets") ?? false,
    phonemizeBetweenBrackets: read("phonemizeBetweenBrackets") ?? false,
    inlineStretch: readInlineStretch(reader),
  };
}

function readInlineStretch(reader: FieldReader): readonly number[] {
  const list = reader.read<string>("inlineSpeedAlpha", fields.inlineSpeedAlpha);
  if (list === undefined || list.trim() === "") return [];
  const values = list
    .split(",", maxInlineValues + 1)
    .map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (values.some((value) => !(value >= quickest && value <= slowest))) {
    reader.refuse(
      "inlineSpeedAlpha",
      `must be numbers from ${quickest} to ${slowest} with commas between, as "0.5, 1.2"`,
    );
  }
  if (values.length > maxInlineValues) {
    reader.refuse("inlineSpeedAlpha", `may hold ${maxInlineValues} numbers at most`);
  }
  return values;
}

/** Fields of arcana; the mist models ignore them. */
function readSampling(reader: FieldReader, modelId: ModelId): Invocation["sampling"] {
  if (modelId !== "arcana") return samplingDefaults;
  const read = (name: keyof typeof fields) => reader.read<number>(name, fields[name]);
  return {
    repetitionPenalty: read("repetition_penalty") ?? samplingDefaults.repetitionPenalty,
    temperature: read("temperature") ?? samplingDefaults.temperature,
    topP: read("top_p") ?? samplingDefaults.topP,
    maxTokens: read("max_tokens") ?? samplingDefaults.maxTokens,
  };
}

/** Reads fields one by one and gathers what is wrong with them. */
class FieldReader {
  readonly #body: Body;
  readonly #errors: FieldError[] = [];

  constructor(body: Body) {
    this.#body = body;
  }

  /** The field's value, or undefined when it is absent, null or wrong. */
  read<Type>(name: string, schema: TSchema): Type | undefined {
    const value = Object.hasOwn(this.#body, name) ? this.#body[name] : undefined;
    if (value === undefined || value === null) return undefined;
    if (Value.Check(schema, value)) return value as Type;
    const given = name === "text" ? `a ${typeof value}${value === "" ? " that is empty" : ""}` : shown(value);
    this.refuse(name, `must be ${describe(schema)}, not ${given}`);
    return undefined;
  }

  readRequired<Type>(name: string, schema: TSchema): Type | undefined {
    const value = this.read<Type>(name, schema);
    if (value === undefined && !this.isWrong(name)) this.refuse(name, `is required: ${describe(schema)}`);
    return value;
  }

  refuse(name: string, detail: string): void {
    this.#errors.push({ pointer: `/${name}`, detail });
  }

  isWrong(name: string): boolean {
    return this.#errors.some((error) => error.pointer === `/${name}`);
  }

  finish(): void {
    const [first] = this.#errors;
    if (!first) return;
    throw new Failure("invalid_request", `${first.pointer.slice(1)} ${first.detail}.`, {
      fields: this.#errors,
    });
  }
}

/** A value as an error may repeat it: short, and never the text to speak. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
