import type { TokenTimestamp } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import type { SpeedRange } from "../runtime/speed-range.ts";
import type { Espeak, EspeakEvent } from "./library.ts";
import { toSsml } from "./ssml.ts";

/** eSpeak NG's own speed, words a minute. */
const normalRate = 175;
/** Its limits are 80 and 450 words a minute; towards them its lengths are off by more and more. */
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
    const listener = new Listener(sink, worker.get_samplerate());
    worker.synthesize(toSsml(utterance.tokens), (audio, events) => listener.hear(audio, events));
    listener.finish();
  };
}

/**
 * Passes audio on without the digital silence that eSpeak NG puts at both ends, and turns marks into times: a token
 * lasts until the next one's mark, or until the speech ends.
 */
class Listener {
  readonly #sink: Sink;
  readonly #rate: number;
  /** Samples of silence left out at the start. */
  #skipped = 0;
  #sent = 0;
  /** Samples of silence held back: they end the utterance unless speech follows. */
  #silence = 0;
  #open: { token: number; start: number } | undefined;
  readonly #pauses: Pauses;
  #stopped = false;

  constructor(sink: Sink, rate: number) {
    this.#sink = sink;
    this.#rate = rate;
    this.#pauses = new Pauses(Math.round(shortestPauseSeconds * rate));
  }

  /** Returns true to stop, as eSpeak NG wants it. */
  hear(audio: Int16Array, events: readonly EspeakEvent[]): boolean {
    if (this.#stopped) return true;
    this.#hearAudio(audio);
    for (const event of events) if (event.type === "mark") this.#hearMark(event);
    return this.#stopped;
  }

  finish(): void {
    const end = this.#inSpeech(this.#pauses.beginOfPauseAt(this.#pauses.heard));
    this.#close(Math.min(end, this.#sent / this.#rate));
  }

  #hearAudio(audio: Int16Array): void {
    this.#pauses.hear(audio);
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

  #hearMark({ audio_position, id }: EspeakEvent): void {
    const position = Math.round((audio_position / 1000) * this.#rate);
    this.#close(this.#inSpeech(this.#pauses.beginOfPauseAt(position)));
    this.#open = { token: Number(id), start: this.#inSpeech(position) };
  }

  /** A place in eSpeak NG's audio as seconds of what is sent. */
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

/** What is this much quieter than the loudest is not heard: eSpeak NG lets a last vowel fade for a quarter of a second. */
const inaudible = 0.01;

/** Where a comma's pause lies: the word before it ends where the pause begins. */
class Pauses {
  readonly #shortest: number;
  #heard = 0;
  #loudest = 0;
  #silentFrom: number | undefined;
  #last = { from: 0, to: 0 };

  constructor(shortestSamples: number) {
    this.#shortest = shortestSamples;
  }

  /** Samples so far. */
  get heard(): number {
    return this.#heard;
  }

  hear(audio: Int16Array): void {
    for (const sample of audio) {
      const loudness = Math.abs(sample);
      if (loudness > this.#loudest) this.#loudest = loudness;
      if (loudness <= inaudible * this.#loudest) this.#silentFrom ??= this.#heard;
      else if (this.#silentFrom !== undefined) this.#end();
      this.#heard++;
    }
  }

  /** The begin of the pause that ends at a place (marks are a millisecond or two off), or the place itself. */
  beginOfPauseAt(place: number): number {
    const open = this.#silentFrom;
    if (open !== undefined && this.#heard - open >= this.#shortest && open < place) return open;
    const near = Math.abs(this.#last.to - place) <= this.#shortest;
    return near && this.#last.from < place ? this.#last.from : place;
  }

  #end(): void {
    const from = this.#silentFrom ?? this.#heard;
    if (this.#heard - from >= this.#shortest) this.#last = { from, to: this.#heard };
    this.#silentFrom = undefined;
  }
}

function firstSound(audio: Int16Array): number {
  return audio.findIndex((sample) => sample !== 0);
}

function lastSound(audio: Int16Array): number {
  return audio.findLastIndex((sample) => sample !== 0);
}
