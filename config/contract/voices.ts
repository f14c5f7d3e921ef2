import type { ModelId } from "./models.ts";

/** A voice of the catalogue: the value of `speaker`, and the engine that synthesizes it. */
export interface Voice {
  readonly id: string;
  readonly models: readonly ModelId[];
  /** Language code of ISO 639-3. */
  readonly language: string;
  readonly gender: "female" | "male" | "neutral";
  /** The voice of the engine, and changes of its prosody and timbre. */
  readonly engine: EngineVoice;
  readonly license: string;
}

export type EngineVoice =
  | {
      readonly kind: "flite";
      readonly voice: "awb" | "rms" | "slt" | "kal16";
      /** Pitch relative to the engine's voice; 1 leaves it unchanged. */
      readonly pitch: number;
      /**
       * Resonances of the vocal tract relative to the engine's voice. A value above 1 sounds like a smaller
       * speaker.
       */
      readonly formants: number;
      /** Duration relative to the engine's voice; 1 leaves it unchanged. */
      readonly stretch: number;
    }
  | {
      readonly kind: "espeak";
      /** Name of an eSpeak NG voice, for example `fr` or `en-us+f3`. */
      readonly voice: string;
      /** From 0 to 99; 50 is the voice's own pitch. */
      readonly pitch: number;
      readonly stretch: number;
    };

/** One voice of a mounted model: its index among the model's speakers or styles. */
export interface NeuralVoice {
  readonly kind: "neural";
  readonly speaker: number;
}

/** A voice of arcana that a mounted language model synthesizes. The name is the id of arcana's voice. */
export interface GeneratedVoice {
  readonly kind: "generated";
  readonly name: string;
}

/** The public description of a voice. */
export type ListedVoice = Omit<Voice, "engine">;

export type FliteVoice = Extract<EngineVoice, { kind: "flite" }>;

const fliteLicense = "BSD-like (Flite, Carnegie Mellon University)";
const espeakLicense = "GPL-3.0-or-later (eSpeak NG)";
const bothMists: readonly ModelId[] = ["mist", "mistv2"];

function flite(
  id: string,
  models: readonly ModelId[],
  gender: Voice["gender"],
  [voice, pitch, formants, stretch]: readonly [
    FliteVoice["voice"],
    pitch: number,
    formants: number,
    stretch: number,
  ],
): Voice {
  const engine = { kind: "flite", voice, pitch, formants, stretch } as const;
  return { id, models, language: "eng", gender, engine, license: fliteLicense };
}

function espeak(
  id: string,
  language: string,
  gender: Voice["gender"],
  [voice, pitch]: readonly [voice: string, pitch: number],
): Voice {
  const engine = { kind: "espeak", voice, pitch, stretch: 1 } as const;
  return { id, models: bothMists, language, gender, engine, license: espeakLicense };
}

/** Every voice. The first voice of a language is its default. */
export const voices: readonly Voice[] = [
  flite("alan", bothMists, "male", ["awb", 1, 1, 1]),
  flite("robert", bothMists, "male", ["rms", 1, 1, 1]),
  flite("susan", bothMists, "female", ["slt", 1, 1, 1]),
  flite("karl", bothMists, "male", ["kal16", 1, 1, 1]),
  flite("emma", bothMists, "female", ["slt", 1.15, 0.97, 1]),
  flite("victor", bothMists, "male", ["rms", 1, 0.93, 1]),
  espeak("lucia", "spa", "female", ["es+f2", 50]),
  espeak("diego", "spa", "male", ["es-419", 45]),
  espeak("claire", "fra", "female", ["fr+f3", 50]),
  espeak("louis", "fra", "male", ["fr", 45]),
  espeak("greta", "deu", "female", ["de+f2", 50]),
  espeak("jonas", "deu", "male", ["de", 45]),
  espeak("giulia", "ita", "female", ["it+f2", 50]),
  espeak("marco", "ita", "male", ["it", 45]),
  espeak("beatriz", "por", "female", ["pt-br+f2", 50]),
  espeak("tiago", "por", "male", ["pt-br", 45]),
  espeak("sanne", "nld", "female", ["nl+f3", 50]),
  espeak("daan", "nld", "male", ["nl", 45]),
  espeak("zofia", "pol", "female", ["pl+f2", 50]),
  espeak("marek", "pol", "male", ["pl", 45]),
  espeak("irina", "rus", "female", ["ru+f2", 50]),
  espeak("dmitri", "rus", "male", ["ru", 45]),
  espeak("anjali", "hin", "female", ["hi+f2", 50]),
  espeak("rohan", "hin", "male", ["hi", 45]),
  espeak("karim", "ara", "male", ["ar", 45]),
  espeak("layla", "ara", "female", ["ar+f2", 50]),
  espeak("elif", "tur", "female", ["tr+f2", 50]),
  espeak("emre", "tur", "male", ["tr", 45]),
  espeak("astrid", "swe", "female", ["sv+f3", 50]),
  espeak("erik", "swe", "male", ["sv", 45]),
  espeak("eleni", "ell", "female", ["el+f2", 50]),
  espeak("nikos", "ell", "male", ["el", 45]),
  flite("luna", ["arcana"], "female", ["slt", 1.06, 0.95, 1]),
  flite("astra", ["arcana"], "female", ["slt", 1.17, 0.98, 0.98]),
  flite("sirius", ["arcana"], "male", ["awb", 0.94, 0.99, 1.02]),
  flite("estelle", ["arcana"], "female", ["slt", 0.94, 0.94, 1.04]),
  flite("lyra", ["arcana"], "female", ["slt", 1.28, 1, 1]),
  flite("vespera", ["arcana"], "female", ["slt", 0.8, 0.9, 1.08]),
  flite("walnut", ["arcana"], "male", ["rms", 1, 0.93, 1.06]),
  flite("eliphas", ["arcana"], "male", ["awb", 0.76, 0.95, 1.08]),
  flite("arcade", ["arcana"], "male", ["awb", 1.16, 1.04, 1]),
  flite("atrium", ["arcana"], "male", ["rms", 1, 1, 1]),
  flite("eucalyptus", ["arcana"], "neutral", ["kal16", 1.3, 1.05, 1]),
  flite("fern", ["arcana"], "female", ["awb", 1.35, 1.05, 1]),
  flite("stucco", ["arcana"], "male", ["rms", 1, 1.08, 1]),
  flite("transom", ["arcana"], "male", ["slt", 0.7, 0.9, 1.02]),
  flite("oculus", ["arcana"], "neutral", ["kal16", 0.86, 0.96, 1.04]),
  flite("moss", ["arcana"], "male", ["awb", 0.86, 0.92, 1.05]),
];

const voiceById = new Map(voices.map((voice) => [voice.id, voice]));

export function findVoice(id: string): Voice | undefined {
  return voiceById.get(id);
}

export function voicesOf(model: ModelId): Voice[] {
  return voices.filter((voice) => voice.models.includes(model));
}

/** Languages of the catalogue, from ISO 639-3 to ISO 639-1 and the English name. */
export const languages: Readonly<Record<string, { readonly iso6391: string; readonly name: string }>> = {
  eng: { iso6391: "en", name: "English" },
  spa: { iso6391: "es", name: "Spanish" },
  fra: { iso6391: "fr", name: "French" },
  deu: { iso6391: "de", name: "German" },
  ita: { iso6391: "it", name: "Italian" },
  por: { iso6391: "pt", name: "Portuguese" },
  nld: { iso6391: "nl", name: "Dutch" },
  pol: { iso6391: "pl", name: "Polish" },
  rus: { iso6391: "ru", name: "Russian" },
  hin: { iso6391: "hi", name: "Hindi" },
  ara: { iso6391: "ar", name: "Arabic" },
  tur: { iso6391: "tr", name: "Turkish" },
  swe: { iso6391: "sv", name: "Swedish" },
  ell: { iso6391: "el", name: "Greek" },
};

const languageByCode = new Map(
  Object.entries(languages).flatMap(([code, { iso6391 }]) => [
    [code, code],
    [iso6391, code],
  ]),
);

/**
 * Returns the ISO 639-3 code of a language. `code` is its code of ISO 639-1 or ISO 639-3 (`en` or `eng`).
 * Returns undefined if no voice has the language.
 */
export function languageOf(code: string): string | undefined {
  return languageByCode.get(code);
}
