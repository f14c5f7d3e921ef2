import { generatorEnv, env as names } from "../../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";

type PoolSettings = Pick<TtsModelPoolSpec, "kind" | "engine" | "env">;

/** Returns whether the engine or the variables of the pool select vLLM, which has its own /metrics. */
export function runsVllm({ kind, engine, env = [] }: PoolSettings): boolean {
  if (kind !== "arcana") return false;
  if (engine) return engine.type === "vllm";
  return env.some(({ name, value }) => name === names.arcanaGenerator && value === "vllm");
}

/** Returns the variables that configure the engine of the model container. */
export function engineVariables({ engine }: PoolSettings): Record<string, string> {
  if (!engine) return {};
  const flags = Object.entries(engine.parameters ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1)) // Tools may change the order of the flags, which must not change the revision.
    .map(([flag, value]) => (value === "" ? `--${flag}` : `--${flag}=${value}`));
  return {
    [names.arcanaGenerator]: engine.type,
    ...(flags.length > 0 && { [generatorEnv.vllmArgs]: flags.join(" ") }),
  };
}
