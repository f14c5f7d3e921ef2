import { type ModelId, type ModelKind, preferences } from "../../../config/contract/models.ts";
import { env as names } from "../../../config/contract/names.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import type { ModelTierOptions } from "../../model/settings.ts";
import { type Environment, readers } from "./environment.ts";
import { readProviders } from "./providers.ts";

/**
 * The engines for requests that exceed the capacity of a mounted model: no other engine, or a built-in
 * engine.
 */
const fallbacks = ["none", "builtin"] as const;

/**
 * Reads the settings of mounted and installed models. The result is empty if no folder is set.
 * @param options the settings of the tier's generator.
 * @throws UsageError with the variable, its value and the allowed values.
 */
export function readVoicesFolder(
  tier: ModelKind,
  environment: Environment,
  { generator, model }: Pick<ModelTierOptions, "generator" | "model">,
): Pick<ModelTierOptions, "voices"> {
  const { text, integer, oneOf } = readers(environment);
  const folder = text(names.voicesDir);
  const installed = text(names.modelsDir);
  const isKokoro = tier === "arcana" && generator === "kokoro";
  if (folder === undefined && installed === undefined) {
    if (!isKokoro) return {};
    throw new UsageError(
      `${names.arcanaGenerator} kokoro needs ${names.modelsDir} or ${names.voicesDir}; set one of them to the folder that contains the model.`,
    );
  }
  const processes = integer(names.voicesProcesses, 0, 0, 256);
  const streams = integer(names.voicesStreams, 0, 0, 10_000);
  const except = model?.folder;
  return {
    voices: {
      providers: readProviders(environment, names.voicesProviders),
      naturalModels: naturalModels(tier, isKokoro, oneOf(names.prefer, preferences, "latency")),
      fallsBack: oneOf(names.voicesFallback, fallbacks, "none") === "builtin",
      ...(folder && { folder }),
      ...(installed && { installed }),
      ...(except && { except }),
      ...(processes > 0 && { processes }),
      ...(streams > 0 && { streams }),
    },
  };
}

/**
 * Returns the models that prefer natural voices. `mistv2` is the model for the lowest latency, so `mistv2` is
 * excluded.
 */
function naturalModels(
  tier: ModelKind,
  isKokoro: boolean,
  preference: (typeof preferences)[number],
): ModelId[] {
  if (tier === "arcana") return isKokoro ? ["arcana"] : [];
  return preference === "quality" ? ["mist"] : [];
}
