import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { ListedVoice } from "../../../config/contract/voices.ts";

/** The names of models and voices that clients send, and that this server translates to its own names. */
export interface Aliases {
  readonly models: Readonly<Record<string, ModelId>>;
  /** The replacement voices for each name. The server uses the first voice that the model supports. */
  readonly voices: Readonly<Record<string, readonly string[]>>;
}

/** The default aliases, which are names that published clients send. */
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
 * Returns the model of a request. If the requested model is absent or unknown, the model of the speaker is used. If
 * the speaker has several models, `mist` has priority.
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
    .find((match) => match !== undefined);
  const owners = voice?.models ?? [];
  return owners.includes("mist") ? "mist" : (owners[0] ?? "mist");
}

/** Returns the first name that is the ID of a model or an alias of a model. */
export function firstKnownModel(
  names: readonly (string | undefined)[],
  { models }: Aliases,
): string | undefined {
  return names.find((name) => modelIds.some((id) => id === name) || lookUp(models, name) !== undefined);
}

/** Returns the voice of the model with this name or alias. If no voice matches, returns the name unchanged. */
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

/** Returns whether a higher `speedAlpha` is faster. On the older mist models, a higher value is slower. */
export function isHigherFaster(model: string): boolean {
  return ["mistv3", "coda", "arcana"].includes(model);
}

function lookUp<Value>(map: Readonly<Record<string, Value>>, name: string | undefined): Value | undefined {
  return name !== undefined && Object.hasOwn(map, name) ? map[name] : undefined;
}
