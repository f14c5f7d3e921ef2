import { env as names } from "../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../crds/tts-model-pool.ts";

/** Whether a vLLM runs in these pods, which has /metrics of its own: where the pool's variables ask for it. */
export function runsVllm({ kind, env = [] }: Pick<TtsModelPoolSpec, "kind" | "env">): boolean {
  return (
    kind === "arcana" && env.some(({ name, value }) => name === names.arcanaGenerator && value === "vllm")
  );
}
