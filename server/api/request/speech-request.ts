import { type ModelId, models, type Profile } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { type Invocation, samplingDefaults } from "../../contract/speech.ts";
import { countCodePoints } from "./code-points.ts";
import { FieldReader, formatValue } from "./field-reader.ts";
import { describe, eventFormatField, fields, quickest, rateField, slowest } from "./fields.ts";
import { formats } from "./formats.ts";
import { type AudioFormat, rateRule, type Variant } from "./variants.ts";

/** A valid speech request with every default resolved. */
export interface SpeechRequest {
  readonly invocation: Invocation;
  readonly format: AudioFormat;
  /** Sampling rate in Hz of the response. */
  readonly rate: number;
}

/** The rules of this deployment, for all requests. */
export interface RequestRules {
  readonly profile: Profile;
  readonly voices: readonly ListedVoice[];
  /** Highest sampling rate in Hz of a self-hosted arcana. */
  readonly highestRate: number;
}

interface ValidationOptions extends RequestRules {
  readonly variant: Variant;
  /** Origin of the request; the API by default. */
  readonly place?: Place;
}

/** The dashboard has other text limits (specification part 8). */
export type Place = "api" | "dashboard";

/** Far more words than the longest text of mist has. */
const maxInlineValues = 500;

/** Decimal numbers only; JavaScript would also accept `0x1` and an empty text. */
const decimal = /^\s*(\d+(\.\d*)?|\.\d+)\s*$/;

/**
 * Validates a body by the specification (parts 2.1 and 8). Unknown fields are ignored, `null` means absent,
 * and values are never clamped. All invalid fields are reported at once.
 * @throws Failure `invalid_request` with JSON pointers.
 */
export function readRequest(body: unknown, options: ValidationOptions): SpeechRequest {
  const reader = new FieldReader(body, ["text"]);
  const request = readFields(reader, options);
  reader.finish();
  return request;
}

function readFields(reader: FieldReader, options: ValidationOptions): SpeechRequest {
  const { variant, voices, profile, place } = options;
  const format = readFormat(reader, variant);
  const modelId = reader.read<ModelId>("modelId", fields.modelId) ?? defaultModel(variant);
  reader.finish(); // The rules of the other fields depend on these two.
  const voice = readVoice(reader, modelId, voices);
  const rate = readRate(reader, modelId, format, options);
  const invocation: Invocation = {
    modelId,
    speaker: voice?.id ?? "",
    lang: voice?.language ?? "",
    text: readText(reader, "text", modelId, place),
    stretch: readStretch(reader, modelId, profile),
    ...readMarkup(reader, modelId, variant),
    sampling: readSampling(reader, modelId),
  };
  return { invocation, format, rate: formats[format].rateFor?.(rate) ?? rate };
}

function defaultModel(variant: Variant): ModelId {
  return variant.form === "stream" ? variant.defaultModel : "mist";
}

/** `audioFormat` is ignored if `Accept` determines the format. */
function readFormat(reader: FieldReader, variant: Variant): AudioFormat {
  if (variant.form === "stream") return variant.format;
  if (variant.form === "events") return reader.read<AudioFormat>("audioFormat", eventFormatField) ?? "mp3";
  const format = reader.read<AudioFormat>("audioFormat", fields.audioFormat);
  if (format === undefined && variant.formatRequired && !reader.isWrong("audioFormat")) {
    reader.refuse(
      "audioFormat",
      `is required with Accept: application/json: ${describe(fields.audioFormat)}`,
    );
  }
  return format ?? "wav";
}

function readVoice(
  reader: FieldReader,
  modelId: ModelId,
  voices: readonly ListedVoice[],
): ListedVoice | undefined {
  const speaker = reader.readRequired<string>("speaker", fields.speaker);
  const lang = reader.read<string>("lang", fields.lang);
  if (speaker === undefined) return undefined;
  const voice = voices.find(({ id, models: speakable }) => id === speaker && speakable.includes(modelId));
  if (!voice) {
    reader.refuse("speaker", noSuchVoice(speaker, modelId, voices));
  } else if (lang !== undefined && !sameLanguage(lang, voice.language)) {
    reader.refuse(
      "lang",
      `must match the voice: ${voice.id} speaks ${voice.language}, not ${formatValue(lang)}. Leave lang out, or choose another speaker`,
    );
  }
  return voice;
}

/** Most often the model is absent, and the default model does not have the voice. */
function noSuchVoice(speaker: string, modelId: ModelId, voices: readonly ListedVoice[]): string {
  const others = voices.find(({ id }) => id === speaker)?.models ?? [];
  const hint =
    others.length > 0
      ? `speaks with ${others.join(" and ")}: set modelId to ${others[0]}`
      : "is none. GET /v1/voices lists them";
  return `must be a voice of ${modelId}, such as ${someVoices(modelId, voices)}; ${formatValue(speaker)} ${hint}`;
}

/** A few voices with similar names. */
export function someVoices(modelId: ModelId, voices: readonly ListedVoice[]): string {
  const ids = voices.filter((voice) => voice.models.includes(modelId)).map((voice) => voice.id);
  return ids.slice(0, 3).join(", ");
}

/** @param name of the field, as the client knows it. */
export function readText(reader: FieldReader, name: string, modelId: ModelId, place: Place = "api"): string {
  const text = reader.readRequired<string>(name, fields.text);
  if (text === undefined) return "";
  const { maxTextLength, maxDashboardTextLength } = models[modelId];
  const limit = place === "api" ? maxTextLength : maxDashboardTextLength;
  const length = limit === undefined ? 0 : countCodePoints(text);
  if (limit !== undefined && length > limit) reader.refuse(name, tooLong(modelId, place, limit, length));
  if (text.trim() === "") reader.refuse(name, "must contain something to speak");
  return text.toWellFormed();
}

function tooLong(modelId: ModelId, place: Place, limit: number, length: number): string {
  const where = place === "api" ? `with ${modelId}` : `with ${modelId} at the dashboard`;
  const way = place === "api" ? "use arcana, which has no limit" : "send it through the API";
  return `may have ${limit} characters ${where} and has ${length}; split it, or ${way}`;
}

function readRate(
  reader: FieldReader,
  modelId: ModelId,
  format: AudioFormat,
  { variant, profile, highestRate }: ValidationOptions,
): number {
  const fixed = variant.form === "stream" ? variant.fixedRate : undefined;
  const rule =
    fixed === undefined
      ? rateRule(modelId, format, profile, highestRate)
      : ({ kind: "list", rates: [fixed] } as const);
  const schema = rateField(rule);
  const rate = reader.read<number>("samplingRate", schema);
  if (rate === undefined && format === "ogg" && !reader.isWrong("samplingRate")) {
    const form = variant.form === "stream" ? "Accept: audio/ogg" : "audioFormat ogg";
    reader.refuse("samplingRate", `is required with ${form}: ${describe(schema)}`);
  }
  return rate ?? fixed ?? variantRate(variant, modelId);
}

function variantRate(variant: Variant, modelId: ModelId): number {
  return variant.form === "stream" ? variant.defaultRate(modelId) : models[modelId].defaultRate;
}

/** A value below 1 is faster on mist and slower on arcana (specification 2.1). */
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
  "noTextNormalization" | "pauseBetweenBrackets" | "phonemizeBetweenBrackets" | "inlineStretch" | "saveOovs"
>;

export const plainMarkup: Markup = {
  noTextNormalization: false,
  pauseBetweenBrackets: false,
  phonemizeBetweenBrackets: false,
  inlineStretch: [],
};

/** Fields of the mist models. arcana ignores them, because both share one body. */
function readMarkup(reader: FieldReader, modelId: ModelId, { form }: Variant): Markup {
  if (modelId === "arcana") return plainMarkup;
  const read = (name: keyof typeof fields) => reader.read<boolean>(name, fields[name]);
  const reduceLatency = read("reduceLatency");
  const saveOovs = form !== "events" && read("saveOovs"); // Specification 4.1 does not list it.
  return {
    noTextNormalization: read("noTextNormalization") ?? reduceLatency ?? false,
    pauseBetweenBrackets: read("pauseBetweenBrackets") ?? false,
    phonemizeBetweenBrackets: read("phonemizeBetweenBrackets") ?? false,
    inlineStretch: readInlineStretch(reader),
    ...(saveOovs && { saveOovs }),
  };
}

function readInlineStretch(reader: FieldReader): readonly number[] {
  const list = reader.read<string>("inlineSpeedAlpha", fields.inlineSpeedAlpha);
  if (list === undefined || list.trim() === "") return [];
  const values = list
    .split(",", maxInlineValues + 1)
    .map((part) => (decimal.test(part) ? Number(part) : Number.NaN));
  if (values.some((value) => !(value >= quickest && value <= slowest))) {
    reader.refuse(
      "inlineSpeedAlpha",
      `must be numbers from ${quickest} to ${slowest}, separated by commas, such as "0.5, 1.2"`,
    );
  }
  if (values.length > maxInlineValues) {
    reader.refuse("inlineSpeedAlpha", `may have at most ${maxInlineValues} numbers`);
  }
  return values;
}

/** Fields of arcana. The mist models ignore them. */
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

/**
 * The base language of a tag in ISO 639-1 if possible, so that `en`, `eng` and `en-US` are the same.
 * Undefined if the text is not a language tag.
 */
function baseLanguage(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return undefined; // Intl throws RangeError only in this case.
  }
}

function sameLanguage(a: string, b: string): boolean {
  const base = baseLanguage(a);
  return base !== undefined && base === baseLanguage(b);
}
