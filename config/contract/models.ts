/**
 * The values of `modelId`, and the model kind that serves each of them (specification parts 1.3, 2.1 and 8).
 */

export const modelIds = ["mist", "mistv2", "arcana"] as const;
export type ModelId = (typeof modelIds)[number];

/** A model kind is a container: `mist` serves two models, and `arcana` serves one model. */
export const modelKinds = ["mist", "arcana"] as const;
export type ModelKind = (typeof modelKinds)[number];

/**
 * The engines of arcana: the language model of this repository, Flite as in mist, a mounted model that vLLM
 * serves, or an installed or mounted Kokoro.
 */
export const arcanaEngines = ["mini", "flite", "vllm", "kokoro"] as const;
export type ArcanaEngineName = (typeof arcanaEngines)[number];

/**
 * The engine of mist's built-in English voices: Flite (`latency`), or Kokoro if it is installed (`quality`).
 */
export const preferences = ["latency", "quality"] as const;

export const profiles = ["self-hosted", "cloud"] as const;
export type Profile = (typeof profiles)[number];

export interface ModelFacts {
  readonly tier: ModelKind;
  /** Unicode code points per request. Undefined means unlimited. */
  readonly maxTextLength: number | undefined;
  /** Unicode code points per request of the dashboard. */
  readonly maxDashboardTextLength: number;
  /** Sampling rate in Hz for requests without one. */
  readonly defaultRate: number;
  /** Sampling rate in Hz for requests of `audio/pcm` without one. */
  readonly defaultPcmRate: number;
}

const mist: ModelFacts = {
  tier: "mist",
  maxTextLength: 500,
  maxDashboardTextLength: 1000,
  defaultRate: 22_050,
  defaultPcmRate: 16_000,
};

export const models: Readonly<Record<ModelId, ModelFacts>> = {
  mist,
  mistv2: mist,
  arcana: {
    tier: "arcana",
    maxTextLength: undefined,
    maxDashboardTextLength: 3000,
    defaultRate: 24_000,
    defaultPcmRate: 24_000,
  },
};

export function modelsOfKind(tier: ModelKind): ModelId[] {
  return modelIds.filter((id) => models[id].tier === tier);
}
