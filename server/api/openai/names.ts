import type { ModelId } from "../../../config/contract/models.ts";

/**
 * The models of this server for the model names that OpenAI's clients send. All names select arcana, because
 * OpenAI's models accept texts of 4,096 characters, and only arcana accepts texts of this length.
 */
export const openaiModels = {
  "tts-1": "arcana",
  "tts-1-hd": "arcana",
  "gpt-4o-mini-tts": "arcana",
} as const satisfies Record<string, ModelId>;

/** The voices of arcana for OpenAI's voice names. Each pair has the same gender. */
export const openaiVoices = {
  alloy: "fern",
  ash: "atrium",
  ballad: "arcade",
  cedar: "moss",
  coral: "luna",
  echo: "sirius",
  fable: "transom",
  marin: "vespera",
  nova: "astra",
  onyx: "walnut",
  sage: "estelle",
  shimmer: "lyra",
  verse: "stucco",
} as const satisfies Record<string, string>;

export const openaiFormats = ["mp3", "opus", "wav", "pcm"] as const;
export type OpenaiFormat = (typeof openaiFormats)[number];
