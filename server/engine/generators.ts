/**
 * The generators of arcana: the language model of this repository, Flite as in mist, or a mounted model that
 * vLLM serves.
 */
export const arcanaEngines = ["mini", "flite", "vllm"] as const;
export type ArcanaEngineName = (typeof arcanaEngines)[number];
