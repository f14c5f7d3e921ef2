import Type, { type TSchema } from "typebox";
import { modelIds } from "../../config/contract/models.ts";
import { audioFormats, eventFormats, type RateRule } from "./variants.ts";

/**
 * The fields of a synthesis request (specification 2.1): the same schemas judge requests and describe the interface.
 * Those that depend on model, form or profile are functions.
 */

/** Limits of both `speedAlpha` and `inlineSpeedAlpha`; past them no engine speaks words. */
export const slowest = 10;
export const quickest = 0.1;

export const fields = {
  speaker: Type.String({ minLength: 1, maxLength: 200 }),
  text: Type.String({ minLength: 1 }),
  modelId: Type.Enum([...modelIds]),
  audioFormat: Type.Enum([...audioFormats]),
  lang: Type.String({ minLength: 2, maxLength: 35 }),
  speedAlpha: Type.Number({ minimum: quickest, maximum: slowest }),
  noTextNormalization: Type.Boolean(),
  reduceLatency: Type.Boolean(),
  pauseBetweenBrackets: Type.Boolean(),
  phonemizeBetweenBrackets: Type.Boolean(),
  inlineSpeedAlpha: Type.String({ maxLength: 10_000 }),
  saveOovs: Type.Boolean(),
  repetition_penalty: Type.Number({ exclusiveMinimum: 0 }),
  temperature: Type.Number({ minimum: 0 }),
  top_p: Type.Number({ exclusiveMinimum: 0, maximum: 1 }),
  max_tokens: Type.Integer({ minimum: 200, maximum: 5000 }),
} as const;

/** `audioFormat` of an event stream (specification 4.1). */
export const eventFormatField = Type.Enum([...eventFormats]);

export function rateField(rule: RateRule): TSchema {
  return rule.kind === "list"
    ? Type.Enum([...rule.rates])
    : Type.Integer({ minimum: rule.from, maximum: rule.to });
}

/** What a schema allows, for people. */
export function describe(schema: TSchema): string {
  const facts: Partial<Record<string, unknown>> = { ...schema };
  if (Array.isArray(facts.enum)) return `one of ${facts.enum.join(", ")}`;
  if (facts.type === "boolean") return "true or false";
  if (facts.type === "string") return "a text that is not empty";
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
