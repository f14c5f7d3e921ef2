import type { TokenTimestamp } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import type { SpeedRange } from "../runtime/speed-range.ts";
import type { Espeak, EspeakEvent } from "./library.ts";
import { toSsml } from "./ssml.ts";

/** eSpeak NG's default speed in words per minute. */
const normalRate = 175;
/**
 * The range of speeds that the server requests from eSpeak NG. eSpeak NG accepts 80 to 450 words per minute,
 * but its durations become inaccurate close to these limits.
 */
export const espeakSpeedRange: SpeedRange = { least: 0.6, most: 1.7 };
const maxPitch = 99;
const shortestPauseSeconds = 0.02;

export function espeakSynthesizer(espeak: Espeak): Synthesize {
  return (utterance, sink) => {
    if (utterance.voice.kind !== "espeak") throw new Error(`eSpeak NG has no ${utterance.voice.kind} voices`);
    if (utterance.tokens.length === 0) return;
    const worker = espeak.withVoice(utterance.voice.voice);
    worker.set_pitch(Math.min(maxPitch, Math.round(utterance.voice.pitch)));
    worker.set_rate(Math.round(normalRate / (utterance.voice.stretch * utterance.stretch)));
    const converter = new OutputConverter(sink, worker.get_samplerate());
    worker.synthesize(toSsml(utterance.tokens), (audio, events) => converter.add(audio, events));
    converter.finish();
  };
}

/**
 * Removes the silence that eSpeak NG adds at both ends, and converts marks into times. A token lasts until
 * the next token's mark, or until the end of the speech.
 */
class OutputConverter {
  readonly #sink: Sink;
  readonly #rate: number;
  /** The number of samples of silence that were removed at the start. */
  #skipped = 0;
  #sent = 0;
  /** The number of samples of silence that are held back until speech follows. */
  #silence = 0;
  #open: { token: number; start: number } | undefined;
  readonly #pauses: Pauses;
  #stopped = false;

  constructor(sink: Sink, rate: number) {
    this.#sink = sink;
    this.#rate = rate;
    this.#pauses = new Pauses(Math.round(shortestPauseSeconds * rate));
  }

  /** Returns true to stop the synthesis, which is eSpeak NG's convention. */
  add(audio: Int16Array, events: readonly EspeakEvent[]): boolean {
    if (this.#stopped) return true;
    this.#addAudio(audio);
    for (const event of events) if (event.type === "mark") this.#addMark(event);
    return this.#stopped;
  }

  finish(): void {
    const end = this.#inSpeech(this.#pauses.beginOfPauseAt(this.#pauses.length));
    this.#close(Math.min(end, this.#sent / this.#rate));
  }

  #addAudio(audio: Int16Array): void {
    this.#pauses.add(audio);
    const end = lastSound(audio);
    if (end < 0) {
      this.#addSilence(audio.length);
      return;
    }
    let begin = 0;
    if (this.#sent === 0) {
      begin = firstSound(audio);
      this.#skipped += begin;
    }
    this.#send(new Int16Array(this.#silence));
    this.#silence = 0;
    this.#send(audio.slice(begin, end + 1));
    this.#silence = audio.length - end - 1;
  }

  #addSilence(samples: number): void {
    if (this.#sent === 0) this.#skipped += samples;
    else this.#silence += samples;
  }

  #send(samples: Int16Array): void {
    if (samples.length === 0 || this.#stopped) return;
    this.#sent += samples.length;
    this.#stopped = !this.#sink.audio(samples, this.#rate);
  }

  #addMark({ audio_position, id }: EspeakEvent): void {
    const position = Math.round((audio_position / 1000) * this.#rate);
    this.#close(this.#inSpeech(this.#pauses.beginOfPauseAt(position)));
    this.#open = { token: Number(id), start: this.#inSpeech(position) };
  }

  /** Converts a position in eSpeak NG's audio to seconds of the sent audio. */
  #inSpeech(position: number): number {
    return Math.max(0, position - this.#skipped) / this.#rate;
  }

  #close(end: number): void {
    if (!this.#open) return;
    const times: TokenTimestamp[] = [{ ...this.#open, end: Math.max(end, this.#open.start) }];
    this.#open = undefined;
    this.#stopped ||= !this.#sink.times(times);
  }
}

/**
 * The level, relative to the loudest sample, below which audio is inaudible. eSpeak NG fades a last vowel for
 * a quarter of a second.
 */
const inaudible = 0.01;

/** Finds pauses within the speech. The word before a pause ends at the start of the pause. */
class Pauses {
  readonly #shortest: number;
  #length = 0;
  #loudest = 0;
  #silentFrom: number | undefined;
  #last = { from: 0, to: 0 };

  constructor(shortestSamples: number) {
    this.#shortest = shortestSamples;
  }

  /** The number of samples so far. */
  get length(): number {
    return this.#length;
  }

  add(audio: Int16Array): void {
    for (const sample of audio) {
      const loudness = Math.abs(sample);
      if (loudness > this.#loudest) this.#loudest = loudness;
      if (loudness <= inaudible * this.#loudest) this.#silentFrom ??= this.#length;
      else if (this.#silentFrom !== undefined) this.#end();
      this.#length++;
    }
  }

  /**
   * Returns the start of the pause that ends at a position, or the position itself if no pause ends there.
   * Marks are inaccurate by one or two milliseconds.
   */
  beginOfPauseAt(position: number): number {
    const open = this.#silentFrom;
    if (open !== undefined && this.#length - open >= this.#shortest && open < position) return open;
    const near = Math.abs(this.#last.to - position) <= this.#shortest;
    return near && this.#last.from < position ? this.#last.from : position;
  }

  #end(): void {
    const from = this.#silentFrom ?? this.#length;
    if (this.#length - from >= this.#shortest) this.#last = { from, to: this.#length };
    this.#silentFrom = undefined;
  }
}

function firstSound(audio: Int16Array): number {
  return audio.findIndex((sample) => sample !== 0);
}

function lastSound(audio: Int16Array): number {
  return audio.findLastIndex((sample) => sample !== 0);
}
