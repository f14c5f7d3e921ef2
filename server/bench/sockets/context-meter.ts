import { createAudioMeter } from "../audio-meter.ts";
import type { AudioMeter } from "../measure.ts";
import { PlaybackMeter } from "../playback.ts";
import type { StreamRecord } from "../stream.ts";

export interface ContextRecord {
  /** The times are milliseconds since the client sent the last token of the first sentence. */
  readonly stream: StreamRecord;
  /** The milliseconds between consecutive chunks of one synthesis. */
  readonly gapsMs: readonly number[];
  /** The milliseconds of audio in the first chunk of each synthesis. */
  readonly firstChunksMs: readonly number[];
  /**
   * The milliseconds from the client's `clear` to the `done` that ends the audio. The value is undefined if
   * the client did not cancel the context.
   */
  readonly silenceMs: number | undefined;
}

/**
 * Measures one context from the messages that the client sends and receives. All times are milliseconds of the
 * same clock.
 */
export class ContextMeter {
  readonly #playback = new PlaybackMeter();
  readonly #gapsMs: number[] = [];
  readonly #firstChunksMs: number[] = [];
  readonly #audio: AudioMeter;
  #bytes = 0;
  #audioMs = 0;
  #sentenceAtMs: number | undefined;
  #firstAudioMs: number | undefined;
  /** The arrival time of the last chunk of the current synthesis. */
  #lastChunkAtMs: number | undefined;
  #clearedAtMs: number | undefined;

  /**
   * Creates a meter.
   * @param rate the sampling rate of the raw PCM in Hz.
   */
  constructor(rate: number) {
    this.#audio = createAudioMeter("audio/pcm", rate);
  }

  get hasAudio(): boolean {
    return this.#bytes > 0;
  }

  get isCleared(): boolean {
    return this.#clearedAtMs !== undefined;
  }

  /** Records that the client sends the last token of the first sentence. */
  sentenceSent(atMs: number): void {
    this.#sentenceAtMs = atMs;
  }

  /** Records that the client sends `clear`. */
  cleared(atMs: number): void {
    this.#clearedAtMs = atMs;
  }

  chunk(atMs: number, piece: Uint8Array): void {
    const { bytes, ms = 0 } = this.#audio.push(piece);
    if (bytes === 0) return;
    this.#firstAudioMs ??= this.#since(atMs);
    if (this.#lastChunkAtMs === undefined) this.#firstChunksMs.push(ms);
    else this.#gapsMs.push(atMs - this.#lastChunkAtMs);
    this.#lastChunkAtMs = atMs;
    this.#bytes += bytes;
    this.#audioMs += ms;
    this.#playback.arrive(atMs, ms);
  }

  /** Records the end of a synthesis. The time until the next synthesis starts does not count as a gap. */
  synthesisOver(): void {
    this.#lastChunkAtMs = undefined;
  }

  /** Returns the record of a context whose `done` arrived. */
  done(atMs: number): ContextRecord {
    const silenceMs = this.#clearedAtMs === undefined ? undefined : atMs - this.#clearedAtMs;
    return this.#record(atMs, this.hasAudio ? "complete" : "failed", {
      silenceMs,
      ...(!this.hasAudio && { code: "no_audio" }),
    });
  }

  /** Returns the record of a context that was open at the end of the run. */
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
    return { stream, gapsMs: this.#gapsMs, firstChunksMs: this.#firstChunksMs, silenceMs };
  }

  /** Returns the milliseconds since the first sentence was sent, or 0 before that time. */
  #since(atMs: number): number {
    return atMs - (this.#sentenceAtMs ?? atMs);
  }
}
