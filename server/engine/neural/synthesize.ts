import type { Token, TokenTimestamp } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import { toInt16 } from "./int16.ts";
import {
  type ModelOutput,
  melodyMarks,
  type NeuralModel,
  type PhonemeWord,
  type SpeakingStyle,
  type SpelledLine,
  type WindowedOutput,
} from "./neural-model.ts";
import { type PlacedSpeech, placeSpeech, speechLimits } from "./speech-edges.ts";

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
  return async ({ voice, tokens, stretch, inWindows = false }, sink) => {
    if (voice.kind !== "neural") throw new Error(`a mounted model has no ${voice.kind} voices`);
    const { speaker } = voice;
    const speech = new SpeechSink(sink, model);
    let pauseSeconds = 0;
    for (const [i, run] of runs(tokens, model, speaker).entries()) {
      const line = model.spell(run.words, speaker);
      // No sound of the run is in the model's vocabulary.
      if (line.tokens.every((token) => token < 0)) continue;
      const style = { speaker, stretch: stretch * run.stretch };
      const mayUseWindows = inWindows && i === 0;
      if (!speech.pause(pauseSeconds) || !(await speech.speak(line, style, mayUseWindows))) return;
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
   * Synthesizes and sends one line.
   * @returns false after an abort.
   */
  async speak(line: SpelledLine, style: SpeakingStyle, inWindows: boolean): Promise<boolean> {
    const windows = inWindows ? await this.#model.speakInWindows?.(line, style) : undefined;
    return windows ? this.#addWindows(line, windows) : this.#add(line, await this.#model.speak(line, style));
  }

  /**
   * Sends the speech of one line.
   * @returns false after an abort.
   */
  #add(line: SpelledLine, output: ModelOutput): boolean {
    const { rate, borders } = this.#model;
    const placed = placeSpeech(line, output, borders, rate);
    if (!placed) return true;
    const { from, to, fade, words } = placed;
    const audio = output.audio.subarray(from, to);
    fadeOut(audio, fade);
    return this.#sink.times(this.#times(words, from, to)) && this.#send(audio);
  }

  /**
   * Sends the speech of one line as soon as its windows are synthesized. The end of the speech depends on the
   * level of the whole line. Therefore the audio after the start of the last word is sent at the end.
   * @returns false after an abort.
   */
  async #addWindows(
    line: SpelledLine,
    { samples, length, audio: windows }: WindowedOutput,
  ): Promise<boolean> {
    const { rate, borders } = this.#model;
    const limits = speechLimits(line, { samples, length }, borders, rate);
    if (!limits) return true;
    const audio = new Float32Array(length);
    let sent: { readonly from: number; to: number } | undefined;
    for await (const { at, audio: piece } of windows(limits)) {
      audio.set(piece, at);
      const to = Math.min(at + piece.length, limits.lastWord);
      const placed = sent ? undefined : placeSpeech(line, { audio, samples }, borders, rate);
      sent ??= placed && to > placed.from ? { from: placed.from, to: placed.from } : undefined;
      if (!sent || to <= sent.to) continue;
      const words = placed ? this.#times(placed.words.slice(0, -1), sent.from, limits.to) : [];
      if (!this.#sink.times(words) || !this.#send(audio.subarray(sent.to, to))) return false;
      sent.to = to;
    }
    return this.#finishWindows(line, { audio, samples }, sent);
  }

  /** Sends the rest of a line, of which a range was sent in windows. */
  #finishWindows(
    line: SpelledLine,
    output: ModelOutput,
    sent: { readonly from: number; readonly to: number } | undefined,
  ): boolean {
    if (!sent) return this.#add(line, output);
    const { rate, borders } = this.#model;
    const placed = placeSpeech(line, output, borders, rate);
    if (!placed) return true;
    const { to, fade, words } = placed;
    const rest = output.audio.subarray(sent.to, to);
    fadeOut(rest, fade);
    const times = this.#times(words.slice(-1), sent.to, to);
    return this.#sink.times(times) && this.#send(rest);
  }

  /**
   * Returns the times of words in the audio of the utterance.
   * @param from the sample of the line that is sent next.
   * @param to the end of the line's speech.
   */
  #times(words: PlacedSpeech["words"], from: number, to: number): TokenTimestamp[] {
    const seconds = (sample: number) => (sample - from + this.#sent) / this.#model.rate;
    return words.map(({ token, from: start, to: end }) => {
      return { token, start: seconds(start), end: seconds(Math.min(end, to)) };
    });
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
