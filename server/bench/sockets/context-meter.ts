import { createAudioMeter } from "../audio-meter.ts";
import type { AudioMeter } from "../measure.ts";
import { PlaybackMeter } from "../playback.ts";
import type { StreamRecord } from "../stream.ts";

/** Result of one context. */
export interface ContextRecord {
  /** Its times are milliseconds since the last token of the first sentence was sent. */
  readonly stream: StreamRecord;
  /** Milliseconds between the chunks of one synthesis. */
  readonly gapsMs: readonly number[];
  /**
   * Milliseconds from sending `clear` to the `done` after which no more audio comes. Undefined if the context
   * was not cancelled.
   */
  readonly silenceMs: number | undefined;
}

/** Measures one context by what was sent and what arrived. All times are milliseconds of any one clock. */
export class ContextMeter {
  readonly #playback = new PlaybackMeter();
  readonly #gapsMs: number[] = [];
  readonly #audio: AudioMeter;
  #bytes = 0;
  #audioMs = 0;
  #sentenceAtMs: number | undefined;
  #firstAudioMs: number | undefined;
  /** Arrival of the last chunk of the running synthesis. */
  #lastChunkAtMs: number | undefined;
  #clearedAtMs: number | undefined;

  /** @param rate Hz of the raw PCM. */
  constructor(rate: number) {
    this.#audio = createAudioMeter("audio/pcm", rate);
  }

  get hasAudio(): boolean {
    return this.#bytes > 0;
  }

  get isCleared(): boolean {
    return this.#clearedAtMs !== undefined;
  }

  /** The last token of the first sentence is sent. */
  sentenceSent(atMs: number): void {
    this.#sentenceAtMs = atMs;
  }

  /** The client sends `clear`. */
  cleared(atMs: number): void {
    this.#clearedAtMs = atMs;
  }

  chunk(atMs: number, piece: Uint8Array): void {
    const { bytes, ms = 0 } = this.#audio.push(piece);
    if (bytes === 0) return;
    this.#firstAudioMs ??= this.#since(atMs);
    if (this.#lastChunkAtMs !== undefined) this.#gapsMs.push(atMs - this.#lastChunkAtMs);
    this.#lastChunkAtMs = atMs;
    this.#bytes += bytes;
    this.#audioMs += ms;
    this.#playback.arrive(atMs, ms);
  }

  /** A synthesis is complete. The time until the next one starts is no gap. */
  synthesisOver(): void {
    this.#lastChunkAtMs = undefined;
  }

  /** The `done` of the context arrived. */
  done(atMs: number): ContextRecord {
    const silenceMs = this.#clearedAtMs === undefined ? undefined : atMs - this.#clearedAtMs;
    return this.#record(atMs, this.hasAudio ? "complete" : "failed", {
      silenceMs,
      ...(!this.hasAudio && { code: "no_audio" }),
    });
  }

  /** The time is up. */
  unfinished(atMs: number): ContextRecord {
    this.#playback.waitUntil(atMs);
    return this.#record(atMs, "unfinished", {});
  }

  failed(atMs: number, code: string): ContextRecord {
    return this.#record(atMs, "failed", { code });
  }

  #record(
    atMs: number,
    outcome: StreamRecord["outcome"],
    { code, silenceMs }: { readonly code?: string; readonly silenceMs?: number | undefined },
  ): ContextRecord {
    const stream = {
      outcome,
      ...(code !== undefined && { code }),
      bytes: this.#bytes,
      wallMs: this.#since(atMs),
      firstAudioMs: this.#firstAudioMs,
      audioMs: this.#audioMs,
      stallMs: this.hasAudio ? this.#playback.stallMs : undefined,
    };
    return { stream, gapsMs: this.#gapsMs, silenceMs };
  }

  /** 0 before the first sentence is complete. */
  #since(atMs: number): number {
    return atMs - (this.#sentenceAtMs ?? atMs);
  }
}
