import type { ModelId } from "./models.ts";

/** A voice of the catalogue: what a caller names in `speaker`, and what speaks it. */
export interface Voice {
  readonly id: string;
  readonly models: readonly ModelId[];
  /** ISO 639-3. */
  readonly language: string;
  readonly gender: "female" | "male" | "neutral";
  /** Prosody and timbre on top of the engine's own voice. */
  readonly engine: EngineVoice;
  readonly license: string;
}

export type EngineVoice =
  | {
      readonly kind: "flite";
      readonly voice: "awb" | "rms" | "slt" | "kal16";
      /** Pitch against the voice's own; 1 leaves it. */
      readonly pitch: number;
      /** Length against the voice's own; 1 leaves it. */
      readonly stretch: number;
    }
  | {
      readonly kind: "espeak";
      /** An eSpeak NG voice, as `fr` or `en-us+f3`. */
      readonly voice: string;
      /** 0..99, 50 is the voice's own. */
      readonly pitch: number;
      readonly stretch: number;
    };
