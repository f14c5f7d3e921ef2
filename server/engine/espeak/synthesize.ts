import type { TokenTimestamp } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import type { SpeedRange } from "../runtime/speed-range.ts";
import type { Espeak, EspeakEvent } from "./library.ts";
import { toSsml } from "./ssml.ts";

/** eSpeak NG's own speed in words per minute. */
const normalRate = 175;
/** Its limits are 80 and 450 words per minute. Close to them its durations become inaccurate. */
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
 * Removes the digital silence that eSpeak NG adds at both ends, and converts marks into times: a token lasts
 * until the next token's mark, or until the end of the speech.
 */
class Listener {
  readonly #sink: Sink;
  readonly #rate: number;
  /** Samples of silence that were removed at the start. */
  #skipped = 0;
  #sent = 0;
  /** Samples of silence that are held back. They end the utterance unless speech follows. */
  #silence = 0;
  #open: { token: number; start: number } | undefined;
  readonly #pauses: Pauses;
  #stopped = false;

  constructor(sink: Sink, rate: number) {
    this.#sink = sink;
    this.#rate = rate;
    this.#pauses = new Pauses(Math.round(shortestPauseSeconds * rate));
  }

  /** Returns true to stop, by eSpeak NG's convention. */
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
 * Level relative to the loudest window below which audio is inaudible: eSpeak NG lets a last vowel fade for a
 * quarter of a second.
 */
const inaudible = 0.01;

/** Position of a comma's pause. The word before it ends where the pause begins. */
class Pauses {
  readonly #shortest: number;
  #heard = 0;
  #loudest = 0;
  #silentFrom: number | undefined;
  #last = { from: 0, to: 0 };

  constructor(shortestSamples: number) {
    this.#shortest = shortestSamples;
  }

  /** Number of samples so far. */
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

  /**
   * Returns the start of the pause that ends at a position (marks are a millisecond or two off), or the
   * position itself.
   */
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
