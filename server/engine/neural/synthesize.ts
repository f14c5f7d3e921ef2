import type { Token } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import { toInt16 } from "./int16.ts";
import {
  type ModelOutput,
  melodyMarks,
  type NeuralModel,
  type PhonemeWord,
  type SpelledLine,
} from "./neural-model.ts";
import { placeSpeech } from "./speech-edges.ts";

/**
 * The longest piece of audio in one message. A model returns the audio of a run at once, so longer runs are
 * split.
 */
const pieceSeconds = 3;
/**
 * The silence after a phrase inside an utterance, at stretch 1. This silence replaces the model's own
 * silence, which is removed.
 */
const phrasePauseSeconds = 0.13;

/**
 * Creates a synthesizer that uses a model. The tokens must have sounds. Each run of words with the same speed
 * is one inference.
 */
export function neuralSynthesizer(model: NeuralModel): Synthesize {
  return async ({ voice, tokens, stretch }, sink) => {
    if (voice.kind !== "neural") throw new Error(`a mounted model has no ${voice.kind} voices`);
    const { speaker } = voice;
    const speech = new SpeechSink(sink, model);
    let pauseSeconds = 0;
    for (const run of runs(tokens, model, speaker)) {
      const line = model.spell(run.words, speaker);
      // No sound of the run is in the model's vocabulary.
      if (line.tokens.every((token) => token < 0)) continue;
      const style = { speaker, stretch: stretch * run.stretch };
      if (!speech.pause(pauseSeconds) || !speech.add(line, await model.speak(line, style))) return;
      pauseSeconds = endsPhrase(run.words.at(-1)) ? phrasePauseSeconds * style.stretch : 0;
    }
  };
}

interface Run {
  readonly stretch: number;
  readonly words: readonly PhonemeWord[];
}

/** Divides tokens into runs. The words of a run have the same speed and fit into one inference. */
function runs(tokens: readonly Token[], model: NeuralModel, speaker: number): Run[] {
  const bySpeed: { stretch: number; words: PhonemeWord[] }[] = [];
  for (const [token, { sounds = [], after, stretch }] of tokens.entries()) {
    if (sounds.length === 0) continue;
    const last = bySpeed.at(-1);
    const word = { token, sounds, after };
    if (last?.stretch === stretch) last.words.push(word);
    else bySpeed.push({ stretch, words: [word] });
  }
  if (!Number.isFinite(model.maxSymbols)) return bySpeed;
  const sizeOf = (word: PhonemeWord) => model.spell([word], speaker).ids.length;
  return bySpeed.flatMap(({ stretch, words }) =>
    splitRun(words, model.maxSymbols, sizeOf).map((part) => ({ stretch, words: part })),
  );
}

type SizeOf = (word: PhonemeWord) => number;

/**
 * Splits a run that is too long for the model. The preferred position is the end of a phrase, then the space
 * between two words, then the middle of a word.
 */
function splitRun(words: readonly PhonemeWord[], most: number, sizeOf: SizeOf): (readonly PhonemeWord[])[] {
  let rest = words
    .flatMap((word) => splitWord(word, most, sizeOf))
    .map((word) => ({ word, size: sizeOf(word) }));
  const lines: PhonemeWord[][] = [];
  while (rest.length > 0) {
    const cut = cutPlace(rest, most);
    lines.push(rest.slice(0, cut).map(({ word }) => word));
    rest = rest.slice(cut);
  }
  return lines;
}

function cutPlace(
  words: readonly { readonly word: PhonemeWord; readonly size: number }[],
  most: number,
): number {
  let total = 0;
  let phraseEnd = 0;
  for (const [place, { word, size }] of words.entries()) {
    total += size;
    if (total > most && place > 0) return phraseEnd || place;
    if (endsPhrase(word)) phraseEnd = place + 1;
  }
  return words.length;
}

/** Splits a word that is too long for the model. All parts keep the word's token. */
function splitWord(word: PhonemeWord, most: number, sizeOf: SizeOf): PhonemeWord[] {
  const { sounds } = word;
  if (sizeOf(word) <= most || sounds.length < 2) return [word];
  const half = Math.ceil(sounds.length / 2);
  return [
    { ...word, sounds: sounds.slice(0, half), after: "" },
    { ...word, sounds: sounds.slice(half) },
  ].flatMap((part) => splitWord(part, most, sizeOf));
}

function endsPhrase(word: PhonemeWord | undefined): boolean {
  return word !== undefined && melodyMarks(word.after).length > 0;
}

/** Sends the speech of each run without the surrounding silence, and the times of its words. */
class SpeechSink {
  readonly #sink: Sink;
  readonly #model: NeuralModel;
  /** The number of samples that were sent before this run. */
  #sent = 0;

  constructor(sink: Sink, model: NeuralModel) {
    this.#sink = sink;
    this.#model = model;
  }

  /**
   * Sends the speech of one line.
   * @returns false after an abort.
   */
  add(line: SpelledLine, output: ModelOutput): boolean {
    const { rate, borders } = this.#model;
    const placed = placeSpeech(line, output, borders, rate);
    if (!placed) return true;
    const { from, to, fade, words } = placed;
    const seconds = (sample: number) => (sample - from + this.#sent) / rate;
    const times = words.map(({ token, from: start, to: end }) => {
      return { token, start: seconds(start), end: seconds(Math.min(end, to)) };
    });
    const audio = output.audio.subarray(from, to);
    fadeOut(audio, fade);
    return this.#sink.times(times) && this.#send(audio);
  }

  /**
   * Sends silence.
   * @returns false after an abort.
   */
  pause(seconds: number): boolean {
    return seconds === 0 || this.#send(new Float32Array(Math.round(seconds * this.#model.rate)));
  }

  #send(audio: Float32Array): boolean {
    const { rate } = this.#model;
    const piece = Math.round(pieceSeconds * rate);
    this.#sent += audio.length;
    for (let at = 0; at < audio.length; at += piece) {
      if (!this.#sink.audio(toInt16(audio.subarray(at, at + piece)), rate)) return false;
    }
    return true;
  }
}

/** Fades out the end of the audio in place, because a cut through a soft sound would click. */
function fadeOut(audio: Float32Array, samples: number): void {
  const begin = Math.max(0, audio.length - samples);
  for (let i = begin; i < audio.length; i++) audio[i] = (audio[i] ?? 0) * ((audio.length - i) / samples);
}
