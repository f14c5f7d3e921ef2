/** What writes arcana's speech: the language model of this repository, Flite with a sampled melody, or a mounted model that vLLM serves. */
export const arcanaEngines = ["mini", "flite", "vllm"] as const;
export type ArcanaEngineName = (typeof arcanaEngines)[number];
