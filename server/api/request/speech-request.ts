import { type ModelId, models, type Profile } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";
import { type Invocation, type Sampling, samplingDefaults, samplingNames } from "../../contract/speech.ts";
import { countCodePoints } from "./code-points.ts";
import { FieldReader, formatValue } from "./field-reader.ts";
import { describe, eventFormatField, fields, quickest, rateField, slowest } from "./fields.ts";
import { formats } from "./formats.ts";
import { type AudioFormat, rateRule, type Variant } from "./variants.ts";

/** A valid speech request, in which every default is resolved. */
export interface SpeechRequest {
  readonly invocation: Invocation;
  readonly format: AudioFormat;
  /** The sampling rate in Hz of the response. */
  readonly rate: number;
}

/** The rules that this deployment applies to all requests. */
export interface RequestRules {
  readonly profile: Profile;
  readonly voices: readonly ListedVoice[];
  /** The highest sampling rate in Hz of a self-hosted arcana. */
  readonly highestRate: number;
}

interface ValidationOptions extends RequestRules {
  readonly variant: Variant;
  /** The source of the request. The default is the API. */
  readonly place?: Place;
}

/** The source of a request. The dashboard has other text limits (specification part 8). */
export type Place = "api" | "dashboard";

/** The highest number of values in `inlineSpeedAlpha`. The longest text of mist has fewer words. */
const maxInlineValues = 500;

/** Matches a decimal number. `Number` would also accept `0x1` and an empty string. */
const decimal = /^\s*(\d+(\.\d*)?|\.\d+)\s*$/;

/**
 * Validates a body according to the specification (parts 2.1 and 8). Unknown fields are ignored, `null` means
 * absent, and values out of range are rejected. The error contains all invalid fields.
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
  reader.finish(); // The rules of the other fields depend on the format and the model.
  const voice = readVoice(reader, modelId, voices);
  const rate = readRate(reader, modelId, format, options);
  const invocation: Invocation = {
    modelId,
    speaker: voice?.id ?? "",
    lang: voice?.language ?? "",
    text: readText(reader, "text", modelId, place),
    stretch: readStretch(reader, modelId, profile),
    ...readMarkup(reader, modelId, variant),
    ...readSampling(reader, modelId),
  };
  return { invocation, format, rate: formats[format].rateFor?.(rate) ?? rate };
}

function defaultModel(variant: Variant): ModelId {
  return variant.form === "stream" ? variant.defaultModel : "mist";
}

/** Reads `audioFormat`. The field is ignored if `Accept` determines the format. */
function readFormat(reader: FieldReader, variant: Variant): AudioFormat {
  if (variant.form === "stream") return variant.format;
  if (variant.form === "events") return reader.read<AudioFormat>("audioFormat", eventFormatField) ?? "mp3";
  const format = reader.read<AudioFormat>("audioFormat", fields.audioFormat);
  if (format === undefined && variant.formatRequired && !reader.isWrong("audioFormat")) {
    reader.refuse(
      "audioFormat",
      `is required with Accept: application/json; use ${describe(fields.audioFormat)}`,
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

/**
 * Explains why the model does not have the voice. Often the client has omitted `modelId`, and the voice
 * belongs to another model than the default.
 */
function noSuchVoice(speaker: string, modelId: ModelId, voices: readonly ListedVoice[]): string {
  const others = voices.find(({ id }) => id === speaker)?.models ?? [];
  const hint =
    others.length > 0
      ? `is a voice of ${others.join(" and ")}: set modelId to ${others[0]}`
      : "is unknown. GET /v1/voices lists the voices";
  return `must be a voice of ${modelId}, such as ${someVoices(modelId, voices)}; ${formatValue(speaker)} ${hint}`;
}

/** Returns the names of up to three voices of the model, as examples. */
export function someVoices(modelId: ModelId, voices: readonly ListedVoice[]): string {
  const ids = voices.filter((voice) => voice.models.includes(modelId)).map((voice) => voice.id);
  return ids.slice(0, 3).join(", ");
}

/**
 * Reads the text to synthesize.
 * @param name the name of the field in the client's API.
 */
export function readText(reader: FieldReader, name: string, modelId: ModelId, place: Place = "api"): string {
  const text = reader.readRequired<string>(name, fields.text);
  if (text === undefined) return "";
  const { maxTextLength, maxDashboardTextLength } = models[modelId];
  const limit = place === "api" ? maxTextLength : maxDashboardTextLength;
  const length = limit === undefined ? 0 : countCodePoints(text);
  if (limit !== undefined && length > limit) reader.refuse(name, tooLong(modelId, place, limit, length));
  if (text.trim() === "") reader.refuse(name, "must contain more than white space");
  return text.toWellFormed();
}

function tooLong(modelId: ModelId, place: Place, limit: number, length: number): string {
  const where = place === "api" ? `with ${modelId}` : `with ${modelId} in the dashboard`;
  const alternative = place === "api" ? "use arcana, which has no limit" : "send the text through the API";
  return `has ${length} characters; the limit ${where} is ${limit}. Split the text, or ${alternative}`;
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
    reader.refuse("samplingRate", `is required with ${form}; use ${describe(schema)}`);
  }
  return rate ?? fixed ?? variantRate(variant, modelId);
}

function variantRate(variant: Variant, modelId: ModelId): number {
  return variant.form === "stream" ? variant.defaultRate(modelId) : models[modelId].defaultRate;
}

/** Reads `speedAlpha`. A value below 1 is faster on mist and slower on arcana (specification 2.1). */
function readStretch(reader: FieldReader, modelId: ModelId, profile: Profile): number {
  const alpha = reader.read<number>("speedAlpha", fields.speedAlpha) ?? 1;
  if (modelId !== "arcana") return alpha;
  if (profile === "cloud" && alpha !== 1) {
    reader.refuse("speedAlpha", "is not supported by arcana with the profile cloud; leave it out");
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

/** Reads the fields of the mist models. arcana ignores these fields. */
function readMarkup(reader: FieldReader, modelId: ModelId, { form }: Variant): Markup {
  if (modelId === "arcana") return plainMarkup;
  const read = (name: keyof typeof fields) => reader.read<boolean>(name, fields[name]);
  const reduceLatency = read("reduceLatency");
  const saveOovs = form !== "events" && read("saveOovs"); // Specification 4.1 does not list `saveOovs`.
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
    reader.refuse("inlineSpeedAlpha", `must have at most ${maxInlineValues} numbers`);
  }
  return values;
}

/** Reads the fields of arcana. The mist models ignore these fields. */
function readSampling(reader: FieldReader, modelId: ModelId): Pick<Invocation, "sampling" | "unsetSampling"> {
  if (modelId !== "arcana") return { sampling: samplingDefaults };
  const read = (name: keyof typeof fields) => reader.read<number>(name, fields[name]);
  const set = {
    repetitionPenalty: read("repetition_penalty"),
    temperature: read("temperature"),
    topP: read("top_p"),
    maxTokens: read("max_tokens"),
  };
  const unsetSampling = samplingNames.filter((name) => set[name] === undefined);
  const values = samplingNames.map((name) => [name, set[name] ?? samplingDefaults[name]] as const);
  const sampling = Object.fromEntries(values) as unknown as Sampling;
  return { sampling, ...(unsetSampling.length > 0 && { unsetSampling }) };
}

/**
 * Returns the base language of a tag: `en` for `en`, `eng` and `en-US`. The result is undefined if the text
 * is not a language tag.
 */
function baseLanguage(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return undefined; // `Intl.Locale` throws a RangeError for an invalid tag.
  }
}

function sameLanguage(a: string, b: string): boolean {
  const base = baseLanguage(a);
  return base !== undefined && base === baseLanguage(b);
}
