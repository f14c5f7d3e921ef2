import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";

/** Names that clients send for models and voices with other names here. */
export interface Aliases {
  readonly models: Readonly<Record<string, ModelId>>;
  /** Voices that may replace each name. The first one that the model has is used. */
  readonly voices: Readonly<Record<string, readonly string[]>>;
}

/** The aliases without configuration: names that published clients send. */
export const defaultAliases: Aliases = {
  models: { coda: "arcana", mistv3: "mist", mistv1: "mist" },
  voices: {
    astra: ["astra", "emma"],
    lyra: ["lyra", "susan"],
    luna: ["luna", "susan"],
    celeste: ["estelle", "emma"],
    cove: ["atrium", "robert"],
    clementine: ["fern", "susan"],
  },
};

/**
 * The model of a request. If it is absent or unknown, the speaker's model is used: `mist` if the speaker has
 * several.
 */
export function resolveModel(
  requested: string | undefined,
  speaker: string | undefined,
  voices: readonly ListedVoice[],
  aliases: Aliases,
): ModelId {
  const model = lookUp(aliases.models, requested) ?? modelIds.find((id) => id === requested);
  if (model) return model;
  const names = [speaker, ...(lookUp(aliases.voices, speaker) ?? [])];
  const voice = names
    .map((name) => voices.find(({ id }) => id === name))
    .find((found) => found !== undefined);
  const owners = voice?.models ?? [];
  return owners.includes("mist") ? "mist" : (owners[0] ?? "mist");
}

/** The first of the names that is a model or an alias of one. */
export function firstKnownModel(
  names: readonly (string | undefined)[],
  { models }: Aliases,
): string | undefined {
  return names.find((name) => modelIds.some((id) => id === name) || lookUp(models, name) !== undefined);
}

/** The model's voice with this name or alias, or the name itself if there is none. */
export function resolveSpeaker(
  speaker: string | undefined,
  model: ModelId,
  voices: readonly ListedVoice[],
  aliases: Aliases,
): string | undefined {
  const isVoice = (name: string) => voices.some(({ id, models }) => id === name && models.includes(model));
  if (speaker === undefined || isVoice(speaker)) return speaker;
  return lookUp(aliases.voices, speaker)?.find(isVoice) ?? speaker;
}

/**
 * Speed has two directions: on the older mist models a higher `speedAlpha` is slower, on the others it is
 * faster.
 */
export function isHigherFaster(model: string): boolean {
  return ["mistv3", "coda", "arcana"].includes(model);
}

function lookUp<Value>(map: Readonly<Record<string, Value>>, name: string | undefined): Value | undefined {
  return name !== undefined && Object.hasOwn(map, name) ? map[name] : undefined;
}
