import Type, { type TSchema } from "typebox";
import { modelIds } from "../../../config/contract/models.ts";
import { audioFormats, eventFormats, type RateRule } from "./variants.ts";

/**
 * Defines the fields of a speech request (specification 2.1). The same schemas validate requests and describe
 * the API.
 */

/** The limits of `speedAlpha` and `inlineSpeedAlpha`. Speech beyond these limits is not intelligible. */
export const slowest = 10;
export const quickest = 0.1;

export const fields = {
  speaker: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "A voice of the model; `GET /v1/voices` lists them.",
  }),
  text: Type.String({
    minLength: 1,
    description:
      "The text to synthesize: at most 500 characters with `mist` and `mistv2`, any length with `arcana`.",
  }),
  modelId: Type.Enum([...modelIds], {
    description: "Default: `arcana` if `Accept` is `audio/wav`, otherwise `mist`.",
  }),
  audioFormat: Type.Enum([...audioFormats], {
    description:
      "Required with `Accept: application/json`. An event stream supports `mp3` (default), `mulaw` and `pcm`. Ignored if `Accept` determines the format.",
  }),
  lang: Type.String({
    minLength: 2,
    maxLength: 35,
    description:
      "The language (ISO 639-1, ISO 639-3 or a BCP 47 tag). It must match the language of the voice.",
  }),
  speedAlpha: Type.Number({
    minimum: quickest,
    maximum: slowest,
    description: "`mist`, `mistv2`: below 1 is faster. `arcana`, self-hosted only: above 1 is faster.",
  }),
  noTextNormalization: Type.Boolean({
    description: "`mist`, `mistv2`: do not expand numbers, dates and abbreviations.",
  }),
  reduceLatency: Type.Boolean({ description: "Alias of `noTextNormalization`, which takes precedence." }),
  pauseBetweenBrackets: Type.Boolean({
    description:
      "`mist`, `mistv2`: `<N>` in the text is N milliseconds of silence. N is at most 60000, and the sum in one text at most 600000.",
  }),
  phonemizeBetweenBrackets: Type.Boolean({
    description: "`mist`, `mistv2`: a word in curly brackets is read as phonemes.",
  }),
  inlineSpeedAlpha: Type.String({
    maxLength: 10_000,
    description:
      "`mist`, `mistv2`: numbers separated by commas, one for each word in square brackets; below 1 is faster.",
  }),
  saveOovs: Type.Boolean({
    description: "`mist`, `mistv2`: save out-of-vocabulary words for review. Ignored on an event stream.",
  }),
  repetition_penalty: Type.Number({
    exclusiveMinimum: 0,
    description: "`arcana`: above 1 encourages new tokens. Default: 1.5.",
  }),
  temperature: Type.Number({ minimum: 0, description: "`arcana`: 0 is greedy. Default: 0.5." }),
  top_p: Type.Number({
    exclusiveMinimum: 0,
    maximum: 1,
    description: "`arcana`: sample only from the most likely tokens with this total probability. Default: 1.",
  }),
  max_tokens: Type.Integer({ minimum: 200, maximum: 5000, description: "`arcana`. Default: 1200." }),
} as const;

/** The field `audioFormat` of an event stream (specification 4.1). */
export const eventFormatField = Type.Enum([...eventFormats]);

export function rateField(rule: RateRule): TSchema {
  return rule.kind === "list"
    ? Type.Enum([...rule.rates])
    : Type.Integer({ minimum: rule.from, maximum: rule.to });
}

/** Describes the values that a schema allows, for an error message. */
export function describe(schema: TSchema): string {
  const facts: Partial<Record<string, unknown>> = { ...schema };
  if (Array.isArray(facts.enum)) return `one of ${facts.enum.join(", ")}`;
  if (facts.type === "boolean") return "true or false";
  if (facts.type === "string") return "a non-empty string";
  const noun = facts.type === "integer" ? "an integer" : "a number";
  return [noun, lowerBound(facts), upperBound(facts)].filter((part) => part !== "").join(" ");
}

function lowerBound(facts: Partial<Record<string, unknown>>): string {
  if (facts.exclusiveMinimum !== undefined) return `above ${facts.exclusiveMinimum}`;
  return facts.minimum === undefined ? "" : `from ${facts.minimum}`;
}

function upperBound(facts: Partial<Record<string, unknown>>): string {
  if (facts.maximum === undefined) return "";
  return facts.exclusiveMinimum === undefined ? `to ${facts.maximum}` : `and at most ${facts.maximum}`;
}
