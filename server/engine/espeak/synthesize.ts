import type { TokenTime, Utterance } from "../../speech.ts";
import type { Sink, Synthesize } from "../serve-jobs.ts";
import type { EspeakEvent, EspeakWorker } from "./library.ts";
import { toSsml } from "./ssml.ts";

/** eSpeak NG's own speed, words a minute; its limits are 80 and 450. */
const normalRate = 175;
const minRate = 80;
const maxRate = 450;

export function espeakSynthesizer(espeak: EspeakWorker): Synthesize {
  return (utterance, sink) => {
    if (utterance.voice.kind !== "espeak") throw new Error(`eSpeak NG has no ${utterance.voice.kind} voices`);
    if (utterance.tokens.length === 0) return;
    espeak.set_voice(utterance.voice.voice);
    espeak.set_pitch(clamp(Math.round(utterance.voice.pitch * utterance.pitch), 0, 99));
    espeak.set_rate(clamp(Math.round(normalRate / wholeStretch(utterance)), minRate, maxRate));
    const listener = new Listener(sink, espeak.get_samplerate());
    espeak.synthesize(toSsml(utterance.tokens), (audio, events) => listener.hear(audio, events));
    listener.finish();
  };
}

function wholeStretch({ voice, stretch }: Utterance): number {
  return voice.stretch * stretch;
}

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(max, value));
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
  #stopped = false;

  constructor(sink: Sink, rate: number) {
    this.#sink = sink;
    this.#rate = rate;
  }

  /** Returns true to stop, as eSpeak NG wants it. */
  hear(audio: Int16Array, events: readonly EspeakEvent[]): boolean {
    if (this.#stopped) return true;
    this.#hearAudio(audio);
    for (const event of events) if (event.type === "mark") this.#hearMark(event);
    return this.#stopped;
  }

  finish(): void {
    this.#close(this.#sent / this.#rate);
  }

  #hearAudio(audio: Int16Array): void {
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
    const start = Math.max(0, audio_position / 1000 - this.#skipped / this.#rate);
    this.#close(start);
    this.#open = { token: Number(id), start };
  }

  #close(end: number): void {
    if (!this.#open) return;
    const times: TokenTime[] = [{ ...this.#open, end: Math.max(end, this.#open.start) }];
    this.#open = undefined;
    this.#stopped ||= !this.#sink.times(times);
  }
}

function firstSound(audio: Int16Array): number {
  return audio.findIndex((sample) => sample !== 0);
}

function lastSound(audio: Int16Array): number {
  return audio.findLastIndex((sample) => sample !== 0);
}
