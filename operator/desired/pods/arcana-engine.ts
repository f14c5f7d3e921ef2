import { generatorEnv, env as names } from "../../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";

type Asked = Pick<TtsModelPoolSpec, "kind" | "engine" | "env">;

/** Whether vLLM, which has its own /metrics, runs in these pods. The engine or the variables of the pool select it. */
export function runsVllm({ kind, engine, env = [] }: Asked): boolean {
  if (kind !== "arcana") return false;
  if (engine) return engine.type === "vllm";
  return env.some(({ name, value }) => name === names.arcanaGenerator && value === "vllm");
}

/** Variables that configure the engine of the model container. */
export function engineVariables({ engine }: Asked): Record<string, string> {
  if (!engine) return {};
  const flags = Object.entries(engine.parameters ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1)) // tools may change the order, and another order would be another revision
    .map(([flag, value]) => (value === "" ? `--${flag}` : `--${flag}=${value}`));
  return {
    [names.arcanaGenerator]: engine.type,
    ...(flags.length > 0 && { [generatorEnv.vllmArgs]: flags.join(" ") }),
  };
}
