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
import { encodeSpeech, type Listener } from "../respond/encode-speech.ts";
import { FirstPiece } from "../respond/first-piece.ts";
import { toFailure } from "../respond/problems.ts";
import type { Synthesizer } from "../synthesis/synthesizer.ts";
import { PacedAudio } from "./paced-audio.ts";
import type { SocketIdentity } from "./socket-identity.ts";

export interface SocketSynthesisServices {
  readonly synthesizer: Pick<Synthesizer, "start">;
  readonly quotas: Pick<Quotas, "count">;
  readonly metrics: Metrics;
  /** The recorder of the usage of API keys. The value is undefined if the settings name no database. */
  readonly usage: UsageRecorder | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** The client and the connection of a synthesis. Limits, logs and metrics need this data. */
export interface SocketCaller {
  readonly requestId: string;
  readonly endpoint: string;
  /**
   * The value is undefined if the upgrade had no API key. On a socket of v1, the first message may contain
   * the key.
   */
  readonly identity: SocketIdentity | undefined;
  /** Starts the span of one synthesis, in the client's trace. */
  beginSpan(requestId: string): Span;
  /** Counts the bytes of the connection. */
  readonly connection: Omit<Outlet, "elapsedMs">;
  /** Returns the caller of one context of a v1 socket. */
  forContext(requestId: string, identity: SocketIdentity | undefined): SocketCaller;
}

/** One text to synthesize on a socket. */
export interface SocketOrder {
  /** The index of this synthesis among the syntheses of the same request. */
  readonly number: number;
  readonly speechRequest: SpeechRequest;
  /** Creates the encoder. Without this function, each synthesis has a new encoder of the requested format. */
  readonly createEncoder?: () => Promise<Encoder>;
}

/**
 * The reason of every abort. One shared error is cheaper than the default reason, which captures a stack
 * trace each time.
 */
const synthesisEnded = new Error("the synthesis ended, or the client disconnected");

/** Synthesizes one text on a socket. Each synthesis is admitted, counted and logged like an HTTP request. */
export class SocketSynthesis {
  readonly #parts: SocketSynthesisServices;
  readonly #caller: SocketCaller;
  readonly #requestId: string;
  readonly #order: SocketOrder;
  readonly #controller = new AbortController();
  readonly #spoken: SynthesisRecord;
  readonly #span: Span;
  readonly #words: WordTimestamp[] = [];
  #apiKey: ApiKey | undefined;
  /** The number of samples that the encoder accepted, at the response's rate. */
  #encodedSamples = 0;
  #sentSeconds = 0;
  #isStopped = false;

  constructor(parts: SocketSynthesisServices, caller: SocketCaller, order: SocketOrder) {
    this.#parts = parts;
    this.#caller = caller;
    this.#apiKey = caller.identity?.apiKey;
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

  /** The seconds of audio that were sent to the client. */
  get audioSeconds(): number {
    return this.#sentSeconds;
  }

  /** The seconds of audio that the encoder accepted, including audio that is still in its buffer. */
  get encodedSeconds(): number {
    return this.#encodedSamples / this.#order.speechRequest.rate;
  }

  /**
   * The words of the speech. After a stop, the list contains only words that the client can have played
   * completely.
   */
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
   * @param send sends encoded audio. Its promise resolves when the client can receive more audio.
   * @throws RefusedCredential if the client's API key or session is no longer valid; Failure if the synthesis
   * fails. After a call of `stop`, the method never throws.
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
    this.#controller.abort(synthesisEnded); // The abort releases the slots of the synthesis.
    if (failure) throw failure;
  }

  async #speak(send: (audio: Uint8Array) => Promise<void>): Promise<void> {
    const { speechRequest, createEncoder } = this.#order;
    const apiKey = await this.#caller.identity?.verify();
    this.#apiKey = apiKey;
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
    const listener: Listener = {
      onEncoded: (samples, bytes, workMs) => {
        this.#encodedSamples += samples;
        this.#spoken.encoded(samples, bytes, workMs);
      },
      onWords: (words) => this.#words.push(...words),
    };
    const { rate } = speechRequest;
    const paced = new PacedAudio({
      clock: this.#parts.clock,
      send,
      onSent: (seconds) => {
        this.#sentSeconds = seconds;
      },
      signal: this.#controller.signal,
    });
    try {
      await this.#sendPieces(encodeSpeech(speaking, rate, listener, new FirstPiece(rate)), paced);
    } finally {
      // After a failure, the client receives the audio that was synthesized before.
      await paced.finish();
    }
  }

  async #sendPieces(pieces: AsyncIterable<Uint8Array>, paced: PacedAudio): Promise<void> {
    const { rate } = this.#order.speechRequest;
    let samples = 0;
    for await (const piece of pieces) {
      // A chunk that contains only a header is not sent.
      if (this.#encodedSamples > 0) await paced.add(piece, (this.#encodedSamples - samples) / rate);
      if (this.#isStopped) return;
      samples = this.#encodedSamples;
    }
  }

  #report(failure: ReturnType<typeof toFailure> | undefined): void {
    const { endpoint } = this.#caller;
    const apiKey = this.#apiKey;
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
    if (code === "internal")
      this.#parts.log.error(
        { err: failure?.cause, ...line },
        "an unexpected error occurred; report it with this log",
      );
    this.#parts.log.info(line, "synthesis");
  }
}
