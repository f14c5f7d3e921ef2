import type { Readable } from "node:stream";
import type { ModelId } from "../../../config/contract/models.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import type { Span } from "../../tracing/span.ts";
import type { AnswerForm, AudioFormat } from "../request/variants.ts";
import type { Metrics } from "./metrics.ts";
import { PlaybackClock, type Wire } from "./playback.ts";

/** A request to speak, as logs and metrics name it. Never its text. */
export interface SynthesisFacts {
  readonly model: ModelId;
  readonly voice: string;
  readonly format: AudioFormat;
  readonly form: AnswerForm;
  /** Hz. */
  readonly rate: number;
}

/** The connection that speech is sent on. */
export interface Outlet {
  /** Since the request for the speech arrived. */
  elapsedMs(): number;
  /** Bytes given to the connection so far. */
  written(): number;
  /** Of these, bytes that still wait in this process. */
  pending(): number;
}

/** Sound that is told to the metrics at once, in samples per Hz: a second. */
const toldAtOnce = 1;

/** Gathers what one answer is like, piece by piece, and tells the metrics. */
export class SynthesisRecord {
  readonly facts: SynthesisFacts;
  /** Unicode code points of the text. */
  readonly characters: number;
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #outlet: Outlet;
  readonly #span: Span;
  #encoding: Span | undefined;
  #workMs = 0;
  readonly #playback: PlaybackClock | undefined;
  #samples = 0;
  #untoldSamples = 0;
  #untoldWorkMs = 0;
  #firstAudioMs: number | undefined;
  /** What was encoded and waits for the response to take it. */
  #body: Readable | undefined;

  /** @param span of the request, which the encoder's work is part of. */
  constructor(
    { characters, ...facts }: SynthesisFacts & { readonly characters: number },
    { metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock },
    outlet: Outlet,
    span: Span,
  ) {
    this.facts = facts;
    this.characters = characters;
    this.#span = span;
    span.set({
      "svc.model": facts.model,
      "svc.voice": facts.voice,
      "svc.format": facts.format,
      "svc.form": facts.form,
      "svc.sampling_rate": facts.rate,
    });
    this.#metrics = metrics;
    this.#clock = clock;
    this.#outlet = outlet;
    this.#playback = facts.form === "json" ? undefined : new PlaybackClock(this.#wire());
  }

  get audioSeconds(): number {
    return this.#samples / this.facts.rate;
  }

  get firstAudioMs(): number | undefined {
    return this.#firstAudioMs;
  }

  /** @param body what the response is fed from. */
  follow(body: Readable): void {
    this.#body = body;
  }

  /**
   * A piece was encoded and goes out next.
   * @param samples at the answer's rate.
   * @param bytes may be none: encoders hold back.
   * @param workMs that resampling and encoding took.
   */
  encoded(samples: number, bytes: number, workMs: number): void {
    this.#encoding ??= this.#span.child("encode");
    this.#workMs += workMs;
    this.#samples += samples;
    this.#untoldSamples += samples;
    this.#untoldWorkMs += workMs;
    if (this.#untoldSamples >= toldAtOnce * this.facts.rate) this.#tellAudio();
    if (bytes === 0 || !this.#playback) return;
    if (this.#firstAudioMs === undefined) this.#tellFirstAudio();
    this.#playback.encoded((samples / this.facts.rate) * 1000, this.#clock.monotonicMs());
  }

  /** What was encoded so far is thrown away: the model is asked once more. */
  startAgain(): void {
    this.#tellAudio();
    this.#samples = 0;
  }

  /** The answer is over; call once. @param isWhole false when the caller hung up before its end. */
  over(isWhole: boolean, code: ErrorCode | undefined): void {
    if (isWhole && !code) {
      this.#playback?.finished(this.#clock.monotonicMs());
      if (!this.#playback) this.#tellFirstAudio();
    }
    this.#tellAudio();
    this.#encoding?.set({ "svc.audio_seconds": this.audioSeconds, "svc.work_seconds": this.#workMs / 1000 });
    this.#encoding?.end(code);
    const { model, voice } = this.facts;
    const outcome = isWhole && !code ? "ok" : code ? "error" : "gone";
    this.#metrics.spoken({ model, voice, outcome, ranDry: this.#playback?.ranDry ?? false });
  }

  #tellFirstAudio(): void {
    const { model, form, format } = this.facts;
    this.#firstAudioMs = this.#outlet.elapsedMs();
    this.#metrics.firstAudio({
      model,
      variant: `${form}-${format}`,
      seconds: this.#firstAudioMs / 1000,
      traceId: this.#span.isRecording ? this.#span.traceId : undefined,
    });
  }

  #tellAudio(): void {
    const { model, format, rate } = this.facts;
    this.#metrics.audioEncoded({
      model,
      format,
      audioSeconds: this.#untoldSamples / rate,
      workSeconds: this.#untoldWorkMs / 1000,
    });
    this.#untoldSamples = 0;
    this.#untoldWorkMs = 0;
  }

  /** Bytes of this answer on its connection, which may have carried others before. */
  #wire(): Wire {
    const before = this.#outlet.written();
    const waiting = () => this.#body?.readableLength ?? 0;
    return {
      sent: () => this.#outlet.written() - before + waiting(),
      pending: () => this.#outlet.pending() + waiting(),
    };
  }
}
