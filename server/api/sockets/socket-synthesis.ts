import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import type { Encoder } from "../../audio/encoder.ts";
import type { WordTimestamp } from "../../contract/speech.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { UsageRecorder } from "../../store/usage.ts";
import type { Span } from "../../tracing/span.ts";
import type { Quotas } from "../access/quotas.ts";
import { countSynthesis } from "../access/rate-limit.ts";
import { noteUse } from "../observability/access-log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type Outlet, SynthesisRecord } from "../observability/synthesis-record.ts";
import { countCodePoints } from "../request/code-points.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import { encodeSpeech } from "../respond/encode-speech.ts";
import { toFailure } from "../respond/problems.ts";
import type { Synthesizer } from "../synthesis/synthesizer.ts";

/** Services of every synthesis on a socket. */
export interface SocketSynthesisServices {
  readonly synthesizer: Pick<Synthesizer, "start">;
  readonly quotas: Pick<Quotas, "count">;
  readonly metrics: Metrics;
  /** Undefined without a database. */
  readonly usage: UsageRecorder | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** The socket of a synthesis, for limits, logs and metrics. */
export interface SocketCaller {
  readonly requestId: string;
  readonly endpoint: string;
  /** Undefined if the upgrade had no key. The first message of v1 may contain one. */
  readonly apiKey: ApiKey | undefined;
  /** The span of one synthesis, in the client's trace. */
  beginSpan(requestId: string): Span;
  /** Bytes on the connection. */
  readonly connection: Omit<Outlet, "elapsedMs">;
}

/** One text to synthesize on a socket. */
export interface SocketOrder {
  /** Index of this synthesis among those of the same request. */
  readonly number: number;
  readonly wanted: SpeechRequest;
  /** The encoder of the speech. Default: a new one. */
  readonly createEncoder?: () => Promise<Encoder>;
}

/** Bytes of audio in one message: a multiple of two for whole samples, and of three for base64. */
const longestChunk = 48 * 1024;

/** One error for all, because the default reason of an abort captures a stack trace each time. */
const synthesisEnded = new Error("the synthesis ended, or the client disconnected");

/** One text synthesized on a socket. It is admitted, counted and logged like an HTTP request of its own. */
export class SocketSynthesis {
  readonly #parts: SocketSynthesisServices;
  readonly #caller: SocketCaller;
  readonly #requestId: string;
  readonly #order: SocketOrder;
  readonly #controller = new AbortController();
  readonly #spoken: SynthesisRecord;
  readonly #span: Span;
  readonly #words: WordTimestamp[] = [];
  /** Samples at the response's rate that the encoder has accepted, and that were sent. */
  #encodedSamples = 0;
  #sentSamples = 0;
  #isStopped = false;

  constructor(parts: SocketSynthesisServices, caller: SocketCaller, order: SocketOrder) {
    this.#parts = parts;
    this.#caller = caller;
    this.#order = order;
    this.#requestId = `${caller.requestId}.${order.number}`;
    this.#span = caller.beginSpan(this.#requestId);
    const { invocation, format, rate } = order.wanted;
    const startedAtMs = parts.clock.monotonicMs();
    this.#spoken = new SynthesisRecord(
      {
        ...{ model: invocation.modelId, voice: invocation.speaker, format, form: "socket", rate },
        characters: countCodePoints(invocation.text),
      },
      parts,
      { ...caller.connection, elapsedMs: () => parts.clock.monotonicMs() - startedAtMs },
      this.#span,
    );
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Seconds of audio that were sent. */
  get audioSeconds(): number {
    return this.#sentSamples / this.#order.wanted.rate;
  }

  /** The same with the audio that its encoder still holds back. */
  get encodedSeconds(): number {
    return this.#encodedSamples / this.#order.wanted.rate;
  }

  /** Words that the client can have played completely. */
  get words(): readonly WordTimestamp[] {
    return this.#isStopped ? this.#words.filter(({ end }) => end <= this.audioSeconds) : this.#words;
  }

  /** Frees the engine. Nothing more is sent. */
  stop(): void {
    this.#isStopped = true;
    this.#controller.abort(synthesisEnded);
  }

  /**
   * Synthesizes to the end, or until it is stopped.
   * @param send resolves when the client can receive more.
   * @throws Failure if the synthesis fails; never after it was stopped.
   */
  async run(send: (audio: Uint8Array) => Promise<void>): Promise<void> {
    let error: unknown;
    try {
      await this.#speak(send);
    } catch (thrown) {
      error = thrown;
    }
    const failure = error === undefined || this.#isStopped ? undefined : toFailure(error);
    this.#report(failure);
    this.#controller.abort(synthesisEnded); // Releases its slots.
    if (failure) throw failure;
  }

  async #speak(send: (audio: Uint8Array) => Promise<void>): Promise<void> {
    const { apiKey } = this.#caller;
    const { wanted, createEncoder } = this.#order;
    if (apiKey) await countSynthesis(this.#parts.quotas, apiKey);
    const speaking = await this.#parts.synthesizer.start({
      wanted,
      ...(createEncoder && { createEncoder }),
      form: "socket",
      requestId: this.#requestId,
      apiKey,
      span: this.#span,
      signal: this.#controller.signal,
    });
    const pieces = encodeSpeech(speaking, wanted.rate, {
      onEncoded: (samples, bytes, workMs) => {
        this.#encodedSamples += samples;
        this.#spoken.encoded(samples, bytes, workMs);
      },
      onWords: (words) => this.#words.push(...words),
    });
    for await (const piece of pieces) {
      // A header without audio needs no chunk.
      const audio = this.#encodedSamples > 0 ? piece : new Uint8Array();
      for (let at = 0; at < audio.length && !this.#isStopped; at += longestChunk) {
        await send(audio.subarray(at, at + longestChunk));
      }
      if (this.#isStopped) return;
      this.#sentSamples = this.#encodedSamples;
    }
  }

  #report(failure: ReturnType<typeof toFailure> | undefined): void {
    const { apiKey, endpoint } = this.#caller;
    const code = failure?.code;
    this.#spoken.over(!this.#isStopped, code);
    if (this.#isStopped) this.#parts.metrics.socketCancelled(this.#spoken.facts.model);
    this.#span.set({ "svc.caller_gone": this.#isStopped });
    this.#span.end(code);
    noteUse(this.#parts.usage, { apiKey, failure, spoken: this.#spoken });
    const { facts, audioSeconds, firstAudioMs } = this.#spoken;
    const line = {
      requestId: this.#requestId,
      endpoint,
      ...(code && { code }),
      ...(this.#isStopped && { isCancelled: true }),
      ...(apiKey && { keyId: apiKey.id, key: apiKey.name }),
      ...facts,
      audioSeconds: Number(audioSeconds.toFixed(3)),
      ...(firstAudioMs !== undefined && { firstAudioMs: Math.round(firstAudioMs) }),
    };
    if (code === "internal") this.#parts.log.error({ err: failure?.cause, ...line }, "unexpected error");
    this.#parts.log.info(line, "synthesis");
  }
}
