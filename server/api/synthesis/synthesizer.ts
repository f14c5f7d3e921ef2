import { setImmediate as nextTurn } from "node:timers/promises";
import { models } from "../../../config/contract/models.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Encoder } from "../../audio/encoder.ts";
import { Failure } from "../../contract/errors.ts";
import type { Invocation } from "../../contract/speech.ts";
import type { CachedLexicon } from "../../store/cached-lexicon.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { Span } from "../../tracing/span.ts";
import type { LicenseGate } from "../access/license-gate.ts";
import type { Quotas } from "../access/quotas.ts";
import type { StreamLimiter } from "../access/stream-limiter.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { OovRecorder } from "../oovs/recorder.ts";
import { encoderOf } from "../request/formats.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import type { AnswerForm } from "../request/variants.ts";
import type { Speaking } from "../respond/encode-speech.ts";
import type { CallContext, ModelClient } from "../upstream/model-client.ts";

/** One text to synthesize, from any route. */
export interface SynthesisOrder {
  readonly speechRequest: SpeechRequest;
  readonly form: AnswerForm;
  readonly requestId: string;
  readonly apiKey: ApiKey | undefined;
  readonly span: Span;
  /**
   * This signal aborts when the response has ended or the client has disconnected. The order then releases
   * its slots.
   */
  readonly signal: AbortSignal;
  /**
   * Creates the encoder. Without this function, the synthesizer creates a new encoder of the requested
   * format.
   */
  readonly createEncoder?: () => Promise<Encoder>;
}

interface SynthesizerOptions {
  readonly license: Pick<LicenseGate, "admit">;
  readonly streamLimiter: StreamLimiter;
  readonly quotas: Pick<Quotas, "enter">;
  /** The teams' lexicons. The value is undefined if the settings name no database. */
  readonly lexicon: Pick<CachedLexicon, "find"> | undefined;
  readonly models: Pick<ModelClient, "speak">;
  readonly oovRecorder: Pick<OovRecorder, "note">;
  readonly metrics: Pick<Metrics, "admitted" | "retried" | "streamStarted" | "streamEnded">;
  readonly clock: Clock;
}

/** Admits orders, and starts their synthesis in the model tier. */
export class Synthesizer {
  readonly #options: SynthesizerOptions;

  constructor(options: SynthesizerOptions) {
    this.#options = options;
  }

  /**
   * Admits the order and starts its synthesis. The promise resolves when the first audio has arrived.
   * @throws Failure if the order is not admitted, or the synthesis fails before its first audio.
   */
  async start(order: SynthesisOrder): Promise<Speaking> {
    const { license, metrics } = this.#options;
    const { signal, speechRequest } = order;
    const model = speechRequest.invocation.modelId;
    license.admit(model);
    const onRelease = (leave: () => void) => {
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    };
    await this.#admit(order, onRelease);
    metrics.streamStarted(model);
    onRelease(() => metrics.streamEnded(model));
    return this.begin(order);
  }

  /**
   * Starts the synthesis of an admitted order.
   * @param after the replica that failed and its failure, if the synthesis is repeated on another replica.
   * @throws Failure if the synthesis fails before its first audio, or `after.failure` if no replica accepts the
   * order.
   */
  async begin(order: SynthesisOrder, after?: CallContext["after"]): Promise<Speaking> {
    const { models: client, oovRecorder, metrics } = this.#options;
    const { speechRequest, requestId, apiKey, signal, span } = order;
    const { modelId: model, lang, text } = speechRequest.invocation;
    const begun = client.speak(this.#withLexicon(order), {
      requestId,
      caller: apiKey?.id ?? "",
      signal,
      span,
      ...(after && { after }),
      onOovs: (words) => {
        if (apiKey) oovRecorder.note(apiKey, lang, words, text);
      },
      onAttempt: (failed) => {
        if (failed) metrics.retried({ model, code: failed });
      },
    });
    const prepared = prepareEncoder(order);
    try {
      const [speech, encoder] = await Promise.all([begun, prepared]);
      return { speech, encoder };
    } catch (error) {
      // The encoder is closed, so that a later stream can reuse its codec.
      (await prepared).close?.();
      throw error;
    }
  }

  /** Occupies the slots of an order. @throws Failure `saturated` or `too_many_streams`. */
  async #admit(
    { apiKey, span, speechRequest }: SynthesisOrder,
    onRelease: (leave: () => void) => void,
  ): Promise<void> {
    const { streamLimiter, quotas, metrics, clock } = this.#options;
    const admissionSpan = span.child("admission");
    const arrivedAtMs = clock.monotonicMs();
    try {
      onRelease(streamLimiter.enter());
      if (apiKey) onRelease(await quotas.enter(apiKey));
      admissionSpan.end();
    } catch (error) {
      admissionSpan.end(error instanceof Failure ? error.code : "internal");
      throw error;
    }
    const waitedSeconds = (clock.monotonicMs() - arrivedAtMs) / 1000;
    metrics.admitted({ model: speechRequest.invocation.modelId, waitedSeconds });
  }

  /** Adds the team's lexicon to an invocation of the mist models. Entries of the request have priority. */
  #withLexicon({ apiKey, speechRequest }: SynthesisOrder): Invocation {
    const { modelId, lang, text, lexicon: own } = speechRequest.invocation;
    if (!apiKey || models[modelId].tier !== "mist") return speechRequest.invocation;
    const entries = this.#options.lexicon?.find(apiKey.team, lang, text);
    return entries
      ? { ...speechRequest.invocation, lexicon: { ...entries, ...own } }
      : speechRequest.invocation;
  }
}

/**
 * Creates the encoder while the model synthesizes the first audio, because the creation of some encoders
 * takes milliseconds.
 */
async function prepareEncoder({ speechRequest, form, createEncoder }: SynthesisOrder): Promise<Encoder> {
  await nextTurn(); // The invocation is sent before the encoder is created.
  if (createEncoder) return createEncoder();
  return encoderOf(speechRequest.format, form)(speechRequest.rate);
}
