import type { Readable } from "node:stream";
import type { ModelId } from "../../../config/contract/models.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import type { Span } from "../../tracing/span.ts";
import type { AnswerForm, AudioFormat } from "../request/variants.ts";
import type { Metrics } from "./metrics.ts";
import { PlaybackClock, type Wire } from "./playback.ts";

/**
 * The properties of a speech request for logs and metrics. The text is left out, because texts are
 * confidential.
 */
export interface SynthesisFacts {
  readonly model: ModelId;
  readonly voice: string;
  readonly format: AudioFormat;
  readonly form: AnswerForm;
  /** The sampling rate in Hz. */
  readonly rate: number;
}

/** Reports the progress of the connection that sends the response. */
export interface Outlet {
  /** Returns the time since the request arrived. */
  elapsedMs(): number;
  /** Returns the number of bytes that were written to the connection so far. */
  written(): number;
  /** Returns the number of bytes that still wait in this process. */
  pending(): number;
}

/** The seconds of audio between two reports to the metrics. */
const reportedSeconds = 1;

/** Records the progress of one response, and reports it to the metrics and the trace. */
export class SynthesisRecord {
  readonly facts: SynthesisFacts;
  /** The number of Unicode code points of the text. */
  readonly characters: number;
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #outlet: Outlet;
  readonly #span: Span;
  #encoding: Span | undefined;
  #workMs = 0;
  readonly #playback: PlaybackClock | undefined;
  #samples = 0;
  #unreportedSamples = 0;
  #unreportedWorkMs = 0;
  #firstAudioMs: number | undefined;
  /** The body of the response. Its buffer contains encoded bytes that were not written yet. */
  #body: Readable | undefined;

  /**
   * Starts the record of a request.
   * @param span the span of the request. The record adds a child span for the encoding.
   */
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

  /** Sets the body of the response, whose buffered bytes count as pending. */
  follow(body: Readable): void {
    this.#body = body;
  }

  /**
   * Records an encoded piece before it is sent.
   * @param samples the number of samples at the response's rate.
   * @param bytes the number of bytes, which may be 0, because encoders buffer samples.
   * @param workMs the duration of resampling and encoding.
   */
  encoded(samples: number, bytes: number, workMs: number): void {
    this.#encoding ??= this.#span.child("encode");
    this.#workMs += workMs;
    this.#samples += samples;
    this.#unreportedSamples += samples;
    this.#unreportedWorkMs += workMs;
    if (this.#unreportedSamples >= reportedSeconds * this.facts.rate) this.#reportAudio();
    if (bytes === 0 || !this.#playback) return;
    if (this.#firstAudioMs === undefined) this.#reportFirstAudio();
    this.#playback.encoded((samples / this.facts.rate) * 1000, this.#clock.monotonicMs());
  }

  /** Records that the encoded audio was discarded, and that the synthesis is repeated. */
  startAgain(): void {
    this.#reportAudio();
    this.#samples = 0;
  }

  /**
   * Records the end of the response. The caller must call this method exactly once.
   * @param isWhole is false if the client disconnected before the end.
   */
  over(isWhole: boolean, code: ErrorCode | undefined): void {
    if (isWhole && !code) {
      this.#playback?.finished(this.#clock.monotonicMs());
      if (!this.#playback) this.#reportFirstAudio();
    }
    this.#reportAudio();
    this.#encoding?.set({ "svc.audio_seconds": this.audioSeconds, "svc.work_seconds": this.#workMs / 1000 });
    this.#encoding?.end(code);
    const { model, voice } = this.facts;
    const outcome = isWhole && !code ? "ok" : code ? "error" : "gone";
    this.#metrics.spoken({ model, voice, outcome, ranDry: this.#playback?.ranDry ?? false });
  }

  #reportFirstAudio(): void {
    const { model, form, format } = this.facts;
    this.#firstAudioMs = this.#outlet.elapsedMs();
    this.#metrics.firstAudio({
      model,
      variant: `${form}-${format}`,
      seconds: this.#firstAudioMs / 1000,
      traceId: this.#span.isRecording ? this.#span.traceId : undefined,
    });
  }

  #reportAudio(): void {
    const { model, format, rate } = this.facts;
    this.#metrics.audioEncoded({
      model,
      format,
      audioSeconds: this.#unreportedSamples / rate,
      workSeconds: this.#unreportedWorkMs / 1000,
    });
    this.#unreportedSamples = 0;
    this.#unreportedWorkMs = 0;
  }

  /** Counts only the bytes of this response, because the connection may have had earlier responses. */
  #wire(): Wire {
    const before = this.#outlet.written();
    const waiting = () => this.#body?.readableLength ?? 0;
    return {
      sent: () => this.#outlet.written() - before + waiting(),
      pending: () => this.#outlet.pending() + waiting(),
    };
  }
}
