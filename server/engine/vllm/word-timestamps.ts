import type { EngineVoice } from "../../../config/contract/voices.ts";
import type { TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { ProcessPool } from "../runtime/process-pool.ts";
import { timesOfSounds } from "./sound-lengths.ts";

/**
 * Estimates the times of an utterance's tokens with the same tempo for all. Empty if the signal aborts first.
 */
export type ReadTimes = (utterance: Utterance, signal: AbortSignal) => Promise<readonly TokenTimestamp[]>;

/** Start and end of the speech in seconds of an utterance. */
export interface SpeechEdges {
  readonly start: number;
  readonly end: number;
}

/** eSpeak NG's default voice of English. */
const readingVoice: EngineVoice = { kind: "espeak", voice: "en-us", pitch: 50, stretch: 1 };

/** Reads the sounds of each word with eSpeak NG. */
export function timesBy(espeak: Pick<ProcessPool, "read">): ReadTimes {
  return async ({ tokens }, signal) => {
    const sounds = await espeak.read({ voice: readingVoice, tokens, stretch: 1 }, signal);
    return sounds ? timesOfSounds(tokens, sounds) : [];
  };
}

const stepSeconds = 0.01;
/** Level relative to the loudest part below which audio is not speech: 36 dB. */
const inaudible = 0.016;

/**
 * Finds the start and end of speech in audio that arrives in pieces, because a model may add silence at both
 * ends.
 */
export class EdgeFinder {
  readonly #rate: number;
  readonly #stepSamples: number;
  /** Mean square of each step. */
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

  /** Undefined if all audio is silent. */
  edges(): SpeechEdges | undefined {
    if (this.#openSamples > 0) this.#closeStep();
    const loudest = this.#power.reduce((most, power) => Math.max(most, power), 0);
    const isHeard = (power: number) => power > loudest * inaudible ** 2;
    const first = this.#power.findIndex(isHeard);
    if (first < 0) return undefined;
    const stepsSeconds = this.#stepSamples / this.#rate;
    const end = (this.#power.findLastIndex(isHeard) + 1) * stepsSeconds;
    return { start: first * stepsSeconds, end: Math.min(end, this.#samples / this.#rate) };
  }

  #closeStep(): void {
    this.#power.push(this.#open / this.#openSamples);
    this.#open = 0;
    this.#openSamples = 0;
  }
}

/** A separate loop with numbers only, because every sample passes it. */
function energy(samples: Int16Array, begin: number, end: number): number {
  let sum = 0;
  for (let i = begin; i < end; i++) {
    const sample = samples[i] ?? 0;
    sum += sample * sample;
  }
  return sum;
}

/** Scales estimated times so that the first token starts and the last one ends with the speech. */
export function alignTimes(
  reading: readonly TokenTimestamp[],
  { start, end }: SpeechEdges,
): TokenTimestamp[] {
  const from = Math.min(...reading.map((time) => time.start));
  const to = Math.max(...reading.map((time) => time.end));
  if (!(to > from)) return [];
  const place = (seconds: number) => start + ((seconds - from) / (to - from)) * (end - start);
  return reading.map((time) => ({ token: time.token, start: place(time.start), end: place(time.end) }));
}
