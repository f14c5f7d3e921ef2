import type { Sounds, Token } from "../../contract/speech.ts";
import type { Read } from "../runtime/serve-jobs.ts";
import { type Espeak, type EspeakWorker, isSound } from "./library.ts";
import { plainText, toSsml } from "./ssml.ts";
import { TokenAligner } from "./words.ts";

/**
 * The speed for reading, in words per minute. The audio is discarded, so the highest speed needs the least
 * time.
 */
const quickestRate = 450;
const maxCachedVoices = 16;

/**
 * Creates a function that reads the sounds of tokens in their context. Reading without synthesis takes a
 * fifth of the time of a synthesis, but may not show which token each sound belongs to. In that case the
 * function synthesizes the text, and assigns the phoneme events between the marks of two tokens to the first
 * token.
 */
export function espeakReader(espeak: Espeak): Read {
  const aligners = new Map<string, TokenAligner>();
  const alignerOf = (voice: string) => {
    const cached = aligners.get(voice);
    if (cached) return cached;
    if (aligners.size >= maxCachedVoices) aligners.clear();
    const aligner = new TokenAligner((text) => espeak.wordsOf(text));
    aligners.set(voice, aligner);
    return aligner;
  };
  return ({ voice, tokens }) => {
    if (voice.kind !== "espeak") throw new Error(`eSpeak NG has no ${voice.kind} voices`);
    const worker = espeak.reading(voice.voice);
    const areWords = tokens.every(({ phonemes }) => !phonemes);
    const aligned = areWords ? alignerOf(voice.voice).align(tokens.map(plainText)) : undefined;
    return aligned ?? readByMarks(worker, tokens);
  };
}

function readByMarks(worker: EspeakWorker, tokens: readonly Token[]): Sounds[] {
  worker.set_rate(quickestRate);
  const sounds = readTokens(worker, tokens);
  for (const [index, token] of tokens.entries()) {
    if (index > 0 && sounds[index]?.length === 0) splitJoined(worker, sounds, index, token);
  }
  return sounds;
}

function readTokens(espeak: EspeakWorker, tokens: readonly Token[]): Sounds[] {
  const sounds = tokens.map((): string[] => []);
  let at = 0;
  espeak.synthesize(toSsml(tokens), (_audio, events) => {
    for (const { type, id } of events) {
      if (type === "mark") at = Number(id);
      else if (type === "phoneme" && typeof id === "string" && isSound(id)) sounds[at]?.push(id);
    }
    return false;
  });
  return sounds;
}

/**
 * Divides the sounds of two words that eSpeak NG reads as a single word ("of the"). eSpeak NG reports all
 * sounds under the first word's mark. The second word gets as many sounds as eSpeak NG reads in that word
 * alone.
 */
function splitJoined(espeak: EspeakWorker, sounds: Sounds[], index: number, token: Token): void {
  const before = sounds[index - 1] ?? [];
  const own = readTokens(espeak, [token])[0]?.length ?? 0;
  if (own === 0 || before.length < 2) return;
  const at = Math.max(1, before.length - own);
  sounds[index - 1] = before.slice(0, at);
  sounds[index] = before.slice(at);
}
