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

/** Services for all syntheses on sockets. */
export interface SocketSynthesisServices {
  readonly synthesizer: Pick<Synthesizer, "start">;
  readonly quotas: Pick<Quotas, "count">;
  readonly metrics: Metrics;
  /** Recorder of the usage of API keys. Undefined without a database. */
  readonly usage: UsageRecorder | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** The client and the connection of a synthesis, for limits, logs and metrics. */
export interface SocketCaller {
  readonly requestId: string;
  readonly endpoint: string;
  /** Undefined if the upgrade had no API key. The first message of v1 may contain the key. */
  readonly apiKey: ApiKey | undefined;
  /** Starts the span of one synthesis, in the client's trace. */
  beginSpan(requestId: string): Span;
  /** The counters of the connection's bytes. */
  readonly connection: Omit<Outlet, "elapsedMs">;
}

/** One text to synthesize on a socket. */
export interface SocketOrder {
  /** Index of this synthesis among the syntheses of the same request. */
  readonly number: number;
  readonly speechRequest: SpeechRequest;
  /** Creates the encoder. Default: a new encoder of the requested format. */
  readonly createEncoder?: () => Promise<Encoder>;
}

/** Highest number of bytes of audio in one message: a multiple of two for whole samples, and of three for base64. */
const longestChunk = 48 * 1024;

/** The reason of every abort. The default reason would capture a stack trace each time. */
const synthesisEnded = new Error("the synthesis ended, or the client disconnected");

/** The synthesis of one text on a socket. It is admitted, counted and logged like an HTTP request. */
export class SocketSynthesis {
  readonly #parts: SocketSynthesisServices;
  readonly #caller: SocketCaller;
  readonly #requestId: string;
  readonly #order: SocketOrder;
  readonly #controller = new AbortController();
  readonly #spoken: SynthesisRecord;
  readonly #span: Span;
  readonly #words: WordTimestamp[] = [];
  /** Samples at the response's rate: accepted by the encoder, and sent to the client. */
  #encodedSamples = 0;
  #sentSamples = 0;
  #isStopped = false;

  constructor(parts: SocketSynthesisServices, caller: SocketCaller, order: SocketOrder) {
    this.#parts = parts;
    this.#caller = caller;
    this.#order = order;
    this.#requestId = `${caller.requestId}.${order.number}`;
    this.#span = caller.beginSpan(this.#requestId);
    const { invocation, format, rate } = order.speechRequest;
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

  /** Seconds of audio that the client was sent. */
  get audioSeconds(): number {
    return this.#sentSamples / this.#order.speechRequest.rate;
  }

  /** Seconds of audio that the encoder accepted, including audio that the encoder has not output yet. */
  get encodedSeconds(): number {
    return this.#encodedSamples / this.#order.speechRequest.rate;
  }

  /** The words of the speech. After a stop, only words that the client can have played completely. */
  get words(): readonly WordTimestamp[] {
    return this.#isStopped ? this.#words.filter(({ end }) => end <= this.audioSeconds) : this.#words;
  }

  /** Stops the synthesis. No further audio is sent. */
  stop(): void {
    this.#isStopped = true;
    this.#controller.abort(synthesisEnded);
  }

  /**
   * Synthesizes the text until its end, or until `stop` is called.
   * @param send resolves when the client can receive more audio.
   * @throws Failure if the synthesis fails before `stop` is called.
   */
  async run(send: (audio: Uint8Array) => Promise<void>): Promise<void> {
    let error: unknown;
    try {
      await this.#speak(send);
    } catch (caught) {
      error = caught;
    }
    const failure = error === undefined || this.#isStopped ? undefined : toFailure(error);
    this.#report(failure);
    this.#controller.abort(synthesisEnded); // Releases the slots of the synthesis.
    if (failure) throw failure;
  }

  async #speak(send: (audio: Uint8Array) => Promise<void>): Promise<void> {
    const { apiKey } = this.#caller;
    const { speechRequest, createEncoder } = this.#order;
    if (apiKey) await countSynthesis(this.#parts.quotas, apiKey);
    const speaking = await this.#parts.synthesizer.start({
      speechRequest,
      ...(createEncoder && { createEncoder }),
      form: "socket",
      requestId: this.#requestId,
      apiKey,
      span: this.#span,
      signal: this.#controller.signal,
    });
    const pieces = encodeSpeech(speaking, speechRequest.rate, {
      onEncoded: (samples, bytes, workMs) => {
        this.#encodedSamples += samples;
        this.#spoken.encoded(samples, bytes, workMs);
      },
      onWords: (words) => this.#words.push(...words),
    });
    for await (const piece of pieces) {
      // The client is sent no chunk with only a header.
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
