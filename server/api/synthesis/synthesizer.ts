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
  readonly wanted: SpeechRequest;
  readonly form: AnswerForm;
  readonly requestId: string;
  readonly apiKey: ApiKey | undefined;
  readonly span: Span;
  /** Aborts when the response has ended or the client has disconnected. Until then the order holds its slots. */
  readonly signal: AbortSignal;
  /** The encoder of the speech. Default: a new one. */
  readonly createEncoder?: () => Promise<Encoder>;
}

interface SynthesizerOptions {
  readonly license: Pick<LicenseGate, "admit">;
  readonly streamLimiter: StreamLimiter;
  readonly quotas: Pick<Quotas, "enter">;
  /** The teams' lexicons. Undefined without a database. */
  readonly lexicon: Pick<CachedLexicon, "find"> | undefined;
  readonly models: Pick<ModelClient, "speak">;
  readonly oovRecorder: Pick<OovRecorder, "note">;
  readonly metrics: Pick<Metrics, "admitted" | "retried" | "streamStarted" | "streamEnded">;
  readonly clock: Clock;
}

/** Admits orders, and starts their synthesis in a model tier. */
export class Synthesizer {
  readonly #options: SynthesizerOptions;

  constructor(options: SynthesizerOptions) {
    this.#options = options;
  }

  /**
   * Admits the order and starts its synthesis. Resolves once the first audio exists.
   * @throws Failure if it is not admitted, or fails before its first audio.
   */
  async start(order: SynthesisOrder): Promise<Speaking> {
    const { license, metrics } = this.#options;
    const { signal, wanted } = order;
    const model = wanted.invocation.modelId;
    license.admit(model);
    const untilOver = (leave: () => void) => {
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    };
    await this.#admit(order, untilOver);
    metrics.streamStarted(model);
    untilOver(() => metrics.streamEnded(model));
    return this.begin(order);
  }

  /**
   * Begins the synthesis of an admitted order.
   * @param after the replica that failed, and its failure, if another replica repeats the synthesis.
   * @throws Failure if it fails before its first audio, or `after.failure` if no replica accepts the order.
   */
  async begin(order: SynthesisOrder, after?: CallContext["after"]): Promise<Speaking> {
    const { models: client, oovRecorder, metrics } = this.#options;
    const { wanted, requestId, apiKey, signal, span } = order;
    const { modelId: model, lang, text } = wanted.invocation;
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
      (await prepared).close?.(); // Encoders are a limited resource, which rejected requests must not use up.
      throw error;
    }
  }

  /** @throws Failure `saturated` or `too_many_streams`. */
  async #admit(
    { apiKey, span, wanted }: SynthesisOrder,
    untilOver: (leave: () => void) => void,
  ): Promise<void> {
    const { streamLimiter, quotas, metrics, clock } = this.#options;
    const admissionSpan = span.child("admission");
    const arrivedAtMs = clock.monotonicMs();
    try {
      untilOver(streamLimiter.enter());
      if (apiKey) untilOver(await quotas.enter(apiKey));
      admissionSpan.end();
    } catch (error) {
      admissionSpan.end(error instanceof Failure ? error.code : "internal");
      throw error;
    }
    const waitedSeconds = (clock.monotonicMs() - arrivedAtMs) / 1000;
    metrics.admitted({ model: wanted.invocation.modelId, waitedSeconds });
  }

  /** Applies the team's lexicon to the mist models. Entries of the request itself override it. */
  #withLexicon({ apiKey, wanted }: SynthesisOrder): Invocation {
    const { modelId, lang, text, lexicon: own } = wanted.invocation;
    if (!apiKey || models[modelId].tier !== "mist") return wanted.invocation;
    const entries = this.#options.lexicon?.find(apiKey.team, lang, text);
    return entries ? { ...wanted.invocation, lexicon: { ...entries, ...own } } : wanted.invocation;
  }
}

/** Some encoders take milliseconds to create, which pass while the model makes its first audio. */
async function prepareEncoder({ wanted, form, createEncoder }: SynthesisOrder): Promise<Encoder> {
  await nextTurn(); // The invocation is sent first.
  if (createEncoder) return createEncoder();
  return encoderOf(wanted.format, form)(wanted.rate);
}
