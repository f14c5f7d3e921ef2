import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import { env as names } from "../../../config/contract/names.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import { type Aliases, defaultAliases } from "../../api/request/aliases.ts";
import { formatValue } from "../../api/request/field-reader.ts";
import { clearModes, defaultSocketOptions, type SocketOptions } from "../../api/request/socket-options.ts";
import { type Environment, readers } from "./environment.ts";

const mostSockets = 1_000_000;

/**
 * Reads the settings of WebSockets. @throws UsageError with the variable, its value and the allowed values.
 */
export function readSocketOptions(environment: Environment): SocketOptions {
  const { integer, oneOf } = readers(environment);
  const { perKey, newPerSecond, clearMode } = defaultSocketOptions;
  return {
    aliases: readAliases(environment),
    clearMode: oneOf(names.socketClearMode, clearModes, clearMode),
    perKey: integer(names.keySockets, perKey, 1, mostSockets),
    newPerSecond: integer(names.keySocketsPerSecond, newPerSecond, 1, mostSockets),
  };
}

/** Merges the aliases of the environment over the default aliases. */
function readAliases(environment: Environment): Aliases {
  const { text } = readers(environment);
  const models = readMap(names.modelAliases, text(names.modelAliases), toModel, '{"coda": "arcana"}');
  const voices = readMap(
    names.voiceAliases,
    text(names.voiceAliases),
    toVoices,
    '{"lyra": ["lyra", "susan"]}',
  );
  return {
    models: { ...defaultAliases.models, ...models },
    voices: { ...defaultAliases.voices, ...voices },
  };
}

function toModel(value: unknown): ModelId | undefined {
  return modelIds.find((id) => id === value);
}

/** Reads one voice, or a list of voices. The server uses the first voice that the model supports. */
function toVoices(value: unknown): readonly string[] | undefined {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const voices = list.filter((voice) => typeof voice === "string" && voice !== "");
  return voices.length > 0 && voices.length === list.length ? (voices as string[]) : undefined;
}

function readMap<Value>(
  name: string,
  text: string | undefined,
  read: (value: unknown) => Value | undefined,
  example: string,
): Readonly<Record<string, Value>> {
  if (text === undefined) return {};
  const entries = Object.entries(parseObject(text) ?? { "": undefined });
  const known = entries.map(([alias, value]) => [alias, read(value)] as const);
  const whole = known.filter((entry): entry is readonly [string, Value] => entry[1] !== undefined);
  if (whole.length === entries.length) return Object.fromEntries(whole);
  throw new UsageError(`${name} must be a JSON object such as ${example}; it is ${formatValue(text)}.`);
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
