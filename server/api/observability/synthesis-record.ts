import type { Readable } from "node:stream";
import type { ModelId } from "../../../config/contract/models.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import type { Span } from "../../tracing/span.ts";
import type { AnswerForm, AudioFormat } from "../request/variants.ts";
import type { Metrics } from "./metrics.ts";
import { PlaybackClock, type Wire } from "./playback.ts";

/** A speech request for logs and metrics, without its text. */
export interface SynthesisFacts {
  readonly model: ModelId;
  readonly voice: string;
  readonly format: AudioFormat;
  readonly form: AnswerForm;
  /** Sampling rate in Hz. */
  readonly rate: number;
}

/** The connection of the response. */
export interface Outlet {
  /** Time since the request arrived. */
  elapsedMs(): number;
  /** Bytes given to the connection so far. */
  written(): number;
  /** Bytes that still wait in this process. */
  pending(): number;
}

/** Audio that is reported to the metrics at once, in samples per Hz: a second. */
const toldAtOnce = 1;

/** Collects the properties of one response piece by piece, and reports them to the metrics. */
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
  /** Encoded bytes that wait for the response. */
  #body: Readable | undefined;

  /** @param span of the request, which includes the encoder's work. */
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

  /** @param body the source of the response. */
  follow(body: Readable): void {
    this.#body = body;
  }

  /**
   * Called for each encoded piece before it is sent.
   * @param samples at the response's rate.
   * @param bytes may be 0, because encoders buffer.
   * @param workMs duration of resampling and encoding.
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

  /** Called when the encoded audio is discarded and the synthesis is repeated. */
  startAgain(): void {
    this.#tellAudio();
    this.#samples = 0;
  }

  /**
   * Called once when the response has ended. @param isWhole false if the client disconnected before its end.
   */
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

  /** Bytes of this response on its connection, which may have had others before. */
  #wire(): Wire {
    const before = this.#outlet.written();
    const waiting = () => this.#body?.readableLength ?? 0;
    return {
      sent: () => this.#outlet.written() - before + waiting(),
      pending: () => this.#outlet.pending() + waiting(),
    };
  }
}
