import type { Borders, ModelOutput, SpelledLine } from "./neural-model.ts";

/** The start and the end of a token, in samples. */
export interface WordPlace {
  readonly token: number;
  readonly from: number;
  readonly to: number;
}

/**
 * The part of a line's audio that is sent, and the positions of its words in the line's audio, in samples.
 */
export interface PlacedSpeech {
  readonly from: number;
  readonly to: number;
  /** The number of samples at the end that fade out. */
  readonly fade: number;
  readonly words: readonly WordPlace[];
}

/**
 * The length of silence that remains around the speech, because the border between a word and silence is
 * soft.
 */
const marginSeconds = 0.04;
/**
 * The longest sound before the first word that counts as part of the word, such as the hiss of a consonant.
 */
const softBeginSeconds = 0.15;
/**
 * The longest sound after the last word that counts as part of the word. A later sound is the model's breath.
 */
const softEndSeconds = 0.05;
/** The length of the windows in which the level is measured. */
const windowSeconds = 0.005;
/** The level, relative to the loudest window, below which audio is inaudible: -40 dB. */
const silenceLevel = 0.01;

/**
 * Finds the words of a line by its durations, and the speech without the surrounding silence. Returns
 * undefined for a line without words.
 */
export function placeSpeech(
  line: SpelledLine,
  { audio, samples }: ModelOutput,
  { shiftSeconds, byLevel }: Borders,
  rate: number,
): PlacedSpeech | undefined {
  const words = wordPlaces(line, samples, shiftSeconds * rate);
  const first = words[0];
  const last = words.at(-1);
  if (!first || !last) return undefined;
  const sound = byLevel ? soundIn(audio, rate) : { from: first.from, to: last.to };
  const margin = Math.round(marginSeconds * rate);
  const begin = Math.max(first.from - softBeginSeconds * rate, Math.min(first.from, sound.from));
  const end = Math.max(last.from, Math.min(last.to + softEndSeconds * rate, sound.to));
  const shortenedLast = { ...last, to: Math.min(last.to, end) };
  return {
    from: Math.max(0, Math.floor(begin) - margin),
    to: Math.min(audio.length, Math.ceil(end) + margin),
    fade: byLevel ? margin : 0,
    words: [...words.slice(0, -1), shortenedLast],
  };
}

/** The limits of a line's speech, which follow from the durations before the audio is known. */
interface SpeechLimits {
  /** The range that contains the speech with its margins, in samples. */
  readonly from: number;
  readonly to: number;
  /** The start of the last word. The speech does not end before this sample. */
  readonly lastWord: number;
}

/** Returns the limits of the speech of a line of `length` samples, or undefined for a line without words. */
export function speechLimits(
  line: SpelledLine,
  { samples, length }: { readonly samples: readonly number[]; readonly length: number },
  { shiftSeconds }: Borders,
  rate: number,
): SpeechLimits | undefined {
  const words = wordPlaces(line, samples, shiftSeconds * rate);
  const first = words[0];
  const last = words.at(-1);
  if (!first || !last) return undefined;
  const margin = Math.round(marginSeconds * rate);
  return {
    from: Math.max(0, Math.floor(first.from - softBeginSeconds * rate) - margin),
    to: Math.min(length, Math.ceil(last.to + softEndSeconds * rate) + margin),
    lastWord: Math.floor(last.from),
  };
}

/** Calculates the start and the end of each token from the durations of its IDs. */
function wordPlaces({ tokens }: SpelledLine, samples: readonly number[], shift: number): WordPlace[] {
  const places: WordPlace[] = [];
  let at = shift;
  for (const [index, token] of tokens.entries()) {
    const from = Math.max(0, at);
    at += samples[index] ?? 0;
    if (token < 0) continue;
    const to = Math.max(0, at);
    const last = places.at(-1);
    if (last?.token === token) places[places.length - 1] = { ...last, to };
    else places.push({ token, from, to });
  }
  return places;
}

/**
 * Returns the range from the first to the last audible window, or the whole audio if every window is silent.
 */
function soundIn(audio: Float32Array, rate: number): { from: number; to: number } {
  const size = Math.max(1, Math.round(windowSeconds * rate));
  const levels: number[] = [];
  for (let at = 0; at < audio.length; at += size) levels.push(levelOf(audio.subarray(at, at + size)));
  const threshold = silenceLevel * levels.reduce((most, level) => Math.max(most, level), 0);
  const isAudible = (level: number) => level > threshold;
  const from = levels.findIndex(isAudible);
  if (from < 0) return { from: 0, to: audio.length };
  return { from: from * size, to: Math.min(audio.length, (levels.findLastIndex(isAudible) + 1) * size) };
}

/** Returns the root mean square of the samples. */
function levelOf(samples: Float32Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / Math.max(1, samples.length));
}
