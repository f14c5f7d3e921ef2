import type { Token, TokenTime } from "../../speech.ts";
import type { Sink, Synthesize } from "../serve-jobs.ts";
import type { Reach } from "../within-reach.ts";
import { toInt16 } from "./int16.ts";
import type { NeuralModel, SpelledLine, Spoken, SpokenWord } from "./neural-model.ts";

/** Past these a model that never heard such speech slurs it. */
export const neuralReach: Reach = { least: 0.5, most: 2 };
/** The model has made all of a run when its first sample is there: most of them go out as one message. */
const pieceSeconds = 3;
/** Kept around the speech: a model's border between a word and the silence beside it is soft. */
const marginSeconds = 0.04;

/** Speaks tokens whose `sounds` are given; one inference for each run of words of the same speed. */
export function neuralSynthesizer(model: NeuralModel): Synthesize {
  return async ({ voice, tokens, stretch }, sink) => {
    if (voice.kind !== "neural") throw new Error(`a mounted model has no ${voice.kind} voices`);
    const out = new SpeechSink(sink, model.rate);
    for (const run of runs(tokens, model)) {
      const line = model.spell(run.words);
      const spoken = await model.speak(line, { speaker: voice.speaker, stretch: stretch * run.stretch });
      if (!out.put(line, spoken)) return;
    }
  };
}

interface Run {
  readonly stretch: number;
  readonly words: SpokenWord[];
}

/** Words of one speed that fit the model together. */
function runs(tokens: readonly Token[], { maxSymbols }: NeuralModel): Run[] {
  const found: Run[] = [];
  let symbols = 0;
  for (const [token, { sounds = [], after, stretch }] of tokens.entries()) {
    if (sounds.length === 0) continue;
    const word = { token, sounds: withinLimit(sounds, maxSymbols), after };
    const size = symbolCount(word.sounds) + 2; // a space and a mark
    const last = found.at(-1);
    symbols += size;
    if (last?.stretch === stretch && symbols <= maxSymbols) last.words.push(word);
    else {
      found.push({ stretch, words: [word] });
      symbols = size;
    }
  }
  return found;
}

function symbolCount(sounds: readonly string[]): number {
  return sounds.join("").normalize("NFD").length;
}

/** A word that is longer than the model can say is said as far as it can. */
function withinLimit(sounds: readonly string[], most: number): readonly string[] {
  return symbolCount(sounds) + 2 <= most ? sounds : sounds.slice(0, Math.floor(most / 8));
}

/** Sends the speech of each run without the silence around it, with the times of its words. */
class SpeechSink {
  readonly #sink: Sink;
  readonly #rate: number;
  /** Samples sent before this run. */
  #sent = 0;

  constructor(sink: Sink, rate: number) {
    this.#sink = sink;
    this.#rate = rate;
  }

  /** @returns false when nobody listens any more. */
  put(line: SpelledLine, { audio, samples }: Spoken): boolean {
    const words = wordPlaces(line, samples);
    const first = words[0];
    const last = words.at(-1);
    if (!first || !last) return true;
    const margin = Math.round(marginSeconds * this.#rate);
    const from = Math.max(0, Math.floor(first.from) - margin);
    const to = Math.min(audio.length, Math.ceil(last.to) + margin);
    const offset = this.#sent - from;
    const seconds = (place: number) => (place + offset) / this.#rate;
    const times = words.map((word): TokenTime => {
      return { token: word.token, start: seconds(word.from), end: seconds(Math.min(word.to, to)) };
    });
    this.#sent += to - from;
    return this.#sink.times(times) && this.#send(audio.subarray(from, to));
  }

  #send(audio: Float32Array): boolean {
    const piece = Math.round(pieceSeconds * this.#rate);
    for (let at = 0; at < audio.length; at += piece) {
      if (!this.#sink.audio(toInt16(audio.subarray(at, at + piece)), this.#rate)) return false;
    }
    return true;
  }
}

interface WordPlace {
  readonly token: number;
  readonly from: number;
  readonly to: number;
}

/** Where each token lies, in samples, by the durations of its ids. */
function wordPlaces({ tokens }: SpelledLine, samples: readonly number[]): WordPlace[] {
  const places: WordPlace[] = [];
  let at = 0;
  for (const [index, token] of tokens.entries()) {
    const from = at;
    at += samples[index] ?? 0;
    if (token < 0) continue;
    const last = places.at(-1);
    if (last?.token === token) places[places.length - 1] = { ...last, to: at };
    else places.push({ token, from, to: at });
  }
  return places;
}
