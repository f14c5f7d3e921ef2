import type { EngineVoice } from "../../../config/contract/voices.ts";
import type { Sounds, Token } from "../../contract/speech.ts";
import type { ProcessPool } from "../runtime/process-pool.ts";
import type { GeneratorModel } from "./model/model-folder.ts";

/** Reads the sounds of each token. Returns undefined if the signal aborts first. */
export type ReadSounds = (
  tokens: readonly Token[],
  espeakVoice: string,
  signal: AbortSignal,
) => Promise<readonly Sounds[] | undefined>;

/** Returns the text that the model reads. Returns undefined if the signal aborts first. */
export type ToText = (tokens: readonly Token[], signal: AbortSignal) => Promise<string | undefined>;

const usualEspeakVoice = "en-us";

/** Creates a function that reads sounds with eSpeak NG. */
export function soundsBy(espeak: Pick<ProcessPool, "read">): ReadSounds {
  return (tokens, espeakVoice, signal) => {
    const voice: EngineVoice = { kind: "espeak", voice: espeakVoice, pitch: 50, stretch: 1 };
    return espeak.read({ voice, tokens, stretch: 1 }, signal);
  };
}

/**
 * Creates the function that converts tokens to the text of a prompt, as the manifest selects it: the written
 * words, or their phonemes in IPA.
 * @throws Error if the model reads phonemes, and eSpeak NG is missing.
 */
export function textFor({ manifest, folder }: GeneratorModel, readSounds: ReadSounds | undefined): ToText {
  if (manifest.kind === "audio" || manifest.prompt.frontend !== "phonemes")
    return (tokens) => Promise.resolve(join(tokens, (token) => token.text));
  if (!readSounds)
    throw new Error(
      `The arcana model in ${folder}: manifest.json: /prompt/frontend is "phonemes", which needs eSpeak NG. Install eSpeak NG, or use a model that reads text`,
    );
  const { espeak = usualEspeakVoice } = manifest.prompt;
  return async (tokens, signal) => {
    const sounds = await readSounds(tokens, espeak, signal);
    return sounds && join(tokens, (_, i) => sounds[i]?.join("") ?? "");
  };
}

function join(tokens: readonly Token[], read: (token: Token, i: number) => string): string {
  const words = tokens.map((token, i) => token.before + read(token, i) + token.after);
  return words.filter((word) => word !== "").join(" ");
}
