import type { EngineVoice } from "../../../config/contract/voices.ts";
import type { TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { ProcessPool } from "../runtime/process-pool.ts";
import { timesOfSounds } from "./sound-lengths.ts";

/**
 * Estimates the times of an utterance's tokens. All tokens have the same tempo. Returns an empty list if the
 * signal aborts first.
 */
export type ReadTimes = (utterance: Utterance, signal: AbortSignal) => Promise<readonly TokenTimestamp[]>;

/** The start and the end of the speech in an utterance's audio, in seconds. */
export interface SpeechEdges {
  readonly start: number;
  readonly end: number;
}

/** The eSpeak NG voice that reads the words. */
const readingVoice: EngineVoice = { kind: "espeak", voice: "en-us", pitch: 50, stretch: 1 };

/** Creates a function that estimates times from the sounds that eSpeak NG reads. */
export function timesBy(espeak: Pick<ProcessPool, "read">): ReadTimes {
  return async ({ tokens }, signal) => {
    const sounds = await espeak.read({ voice: readingVoice, tokens, stretch: 1 }, signal);
    return sounds ? timesOfSounds(tokens, sounds) : [];
  };
}

const stepSeconds = 0.01;
/** The level, relative to the loudest part, below which audio is not speech: -36 dB. */
const inaudible = 0.016;

/**
 * Finds the start and the end of the speech in audio that arrives in pieces. A model may add silence at both
 * ends.
 */
export class EdgeFinder {
  readonly #rate: number;
  readonly #stepSamples: number;
  /** The mean square of each step. */
  readonly #power: number[] = [];
  #open = 0;
  #openSamples = 0;
  #samples = 0;

  constructor(rate: number) {
    this.#rate = rate;
    this.#stepSamples = Math.round(rate * stepSeconds);
  }

  push(samples: Int16Array): void {
    this.#samples += samples.length;
    for (let at = 0; at < samples.length; ) {
      const end = Math.min(samples.length, at + this.#stepSamples - this.#openSamples);
      this.#open += energy(samples, at, end);
      this.#openSamples += end - at;
      at = end;
      if (this.#openSamples === this.#stepSamples) this.#closeStep();
    }
  }

  /** Returns the edges of the speech, or undefined if all audio is silent. */
  edges(): SpeechEdges | undefined {
    if (this.#openSamples > 0) this.#closeStep();
    const loudest = this.#power.reduce((most, power) => Math.max(most, power), 0);
    const isAudible = (power: number) => power > loudest * inaudible ** 2;
    const first = this.#power.findIndex(isAudible);
    if (first < 0) return undefined;
    const stepsSeconds = this.#stepSamples / this.#rate;
    const end = (this.#power.findLastIndex(isAudible) + 1) * stepsSeconds;
    return { start: first * stepsSeconds, end: Math.min(end, this.#samples / this.#rate) };
  }

  #closeStep(): void {
    this.#power.push(this.#open / this.#openSamples);
    this.#open = 0;
    this.#openSamples = 0;
  }
}

/** Returns the sum of the squares. This loop runs for every sample, so it creates no objects. */
function energy(samples: Int16Array, begin: number, end: number): number {
  let sum = 0;
  for (let i = begin; i < end; i++) {
    const sample = samples[i] ?? 0;
    sum += sample * sample;
  }
  return sum;
}

/**
 * Scales estimated times. The first token then starts at the start of the speech, and the last token ends at
 * its end.
 */
export function alignTimes(
  reading: readonly TokenTimestamp[],
  { start, end }: SpeechEdges,
): TokenTimestamp[] {
  const from = Math.min(...reading.map((time) => time.start));
  const to = Math.max(...reading.map((time) => time.end));
  if (!(to > from)) return [];
  const scale = (seconds: number) => start + ((seconds - from) / (to - from)) * (end - start);
  return reading.map((time) => ({ token: time.token, start: scale(time.start), end: scale(time.end) }));
}
