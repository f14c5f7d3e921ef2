import type { ModelId } from "../../../config/contract/models.ts";

/**
 * OpenAI's names that its clients send, and their meaning here: a documented table without guesses. All of
 * OpenAI's models accept texts of 4,096 characters, which only arcana does.
 */
export const openaiModels = {
  "tts-1": "arcana",
  "tts-1-hd": "arcana",
  "gpt-4o-mini-tts": "arcana",
} as const satisfies Record<string, ModelId>;

/** OpenAI's voices as voices of arcana, with the same gender. */
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
