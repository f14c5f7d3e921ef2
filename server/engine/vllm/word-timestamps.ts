import type { EngineVoice } from "../../../config/contract/voices.ts";
import type { TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { ProcessPool } from "../runtime/process-pool.ts";
import { timesOfSounds } from "./sound-lengths.ts";

/** When the tokens of an utterance would be heard, spoken at one pace; empty when the signal aborts first. */
export type ReadTimes = (utterance: Utterance, signal: AbortSignal) => Promise<readonly TokenTimestamp[]>;

/** Seconds of an utterance between which there is speech. */
export interface SpeechEdges {
  readonly start: number;
  readonly end: number;
}

/** As eSpeak NG speaks English unasked. */
const readingVoice: EngineVoice = { kind: "espeak", voice: "en-us", pitch: 50, stretch: 1 };

/** Asks eSpeak NG for the sounds of each word. */
export function timesBy(espeak: Pick<ProcessPool, "read">): ReadTimes {
  return async ({ tokens }, signal) => {
    const sounds = await espeak.read({ voice: readingVoice, tokens, stretch: 1 }, signal);
    return sounds ? timesOfSounds(tokens, sounds) : [];
  };
}

const stepSeconds = 0.01;
/** What is this much quieter than the loudest of an utterance is no speech: 36 dB. */
const inaudible = 0.016;

/** Finds where speech begins and ends in audio that comes in pieces: a model may be silent before and after it. */
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

  /** Undefined where nothing is heard. */
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

/** In a loop of its own, with nothing in it but numbers: every sample goes through it. */
function energy(samples: Int16Array, begin: number, end: number): number {
  let sum = 0;
  for (let i = begin; i < end; i++) {
    const sample = samples[i] ?? 0;
    sum += sample * sample;
  }
  return sum;
}

/** Times of another reading, drawn out or together so that the first token begins and the last one ends with the speech. */
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
