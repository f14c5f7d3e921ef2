import { setImmediate as nextTurn } from "node:timers/promises";
import { models } from "../../../config/contract/models.ts";
import type { Encoder } from "../../audio/encoder.ts";
import { Failure } from "../../contract/errors.ts";
import type { Invocation } from "../../contract/speech.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { Span } from "../../tracing/span.ts";
import { encoderOf } from "../request/formats.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import type { AnswerForm } from "../request/variants.ts";
import type { Speaking } from "../respond/encode-speech.ts";
import type { CallContext } from "../upstream/model-client.ts";
import type { ApiContext } from "./api-context.ts";

/** One text to synthesize, from any route. */
export interface SynthesisOrder {
  readonly wanted: SpeechRequest;
  readonly form: AnswerForm;
  readonly requestId: string;
  readonly apiKey: ApiKey | undefined;
  readonly span: Span;
  /** Aborts when the response is over, or the client is gone. Until then the order holds its slots. */
  readonly signal: AbortSignal;
  /** Encodes the speech; one of its own unless given. */
  readonly createEncoder?: () => Promise<Encoder>;
}

/**
 * Admits the order and starts its synthesis. Resolves once the first audio exists.
 * @throws Failure if it is not admitted, or fails before its first audio.
 */
export async function startSynthesis(parts: ApiContext, order: SynthesisOrder): Promise<Speaking> {
  const model = order.wanted.invocation.modelId;
  const { signal } = order;
  parts.license.admit(model);
  const untilOver = (leave: () => void) => {
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  };
  await admit(parts, order, untilOver);
  parts.metrics.streamStarted(model);
  untilOver(() => parts.metrics.streamEnded(model));
  return begin(parts, order);
}

/**
 * Repeats an admitted order on another replica.
 * @throws Failure of the first replica if no other one accepts it.
 */
export function repeatSynthesis(
  parts: ApiContext,
  order: SynthesisOrder,
  after: NonNullable<CallContext["after"]>,
): Promise<Speaking> {
  return begin(parts, order, after);
}

async function begin(
  parts: ApiContext,
  order: SynthesisOrder,
  after?: CallContext["after"],
): Promise<Speaking> {
  const { wanted, requestId, apiKey, signal, span } = order;
  const model = wanted.invocation.modelId;
  const begun = parts.models.speak(withLexicon(parts, order), {
    requestId,
    caller: apiKey?.id ?? "",
    signal,
    span,
    ...(after && { after }),
    onOovs: (words) => noteOovs(parts, order, words),
    onAttempt: (failed) => {
      if (failed) parts.metrics.retried({ model, code: failed });
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

/** Applies the team's lexicon. arcana accepts only text. */
function withLexicon({ lexicon }: ApiContext, { apiKey, wanted }: SynthesisOrder): Invocation {
  const { modelId, lang, text } = wanted.invocation;
  if (!apiKey || models[modelId].tier !== "mist") return wanted.invocation;
  const entries = lexicon?.find(apiKey.team, lang, text);
  return entries ? { ...wanted.invocation, lexicon: entries } : wanted.invocation;
}

function noteOovs(
  { oovRecorder }: ApiContext,
  { apiKey, wanted }: SynthesisOrder,
  words: readonly string[],
): void {
  const { lang, text } = wanted.invocation;
  if (apiKey) oovRecorder.note(apiKey, lang, words, text);
}

/** Some encoders take milliseconds to create, which pass while the model makes its first audio. */
async function prepareEncoder({ wanted, form, createEncoder }: SynthesisOrder): Promise<Encoder> {
  await nextTurn(); // The invocation is sent first.
  if (createEncoder) return createEncoder();
  return encoderOf(wanted.format, form)(wanted.rate);
}

/** @throws Failure `saturated` or `too_many_streams`. */
async function admit(
  { streamLimiter, quotas, metrics, clock }: ApiContext,
  { apiKey, span, wanted }: SynthesisOrder,
  untilOver: (leave: () => void) => void,
): Promise<void> {
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
