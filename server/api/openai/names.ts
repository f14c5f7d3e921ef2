import type { ModelId } from "../../../config/contract/models.ts";

/**
 * Names of OpenAI's that its clients send, and what they mean here: a table that is documented and never guesses. All its
 * models take texts of 4,096 characters, which arcana alone does.
 */
export const openaiModels = {
  "tts-1": "arcana",
  "tts-1-hd": "arcana",
  "gpt-4o-mini-tts": "arcana",
} as const satisfies Record<string, ModelId>;

/** OpenAI's voices as voices of arcana, a woman's for a woman's and a man's for a man's. */
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
