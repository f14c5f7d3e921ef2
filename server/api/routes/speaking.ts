import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { models, type Profile } from "../../../config/contract/models.ts";
import type { Encoder } from "../../audio/encoder.ts";
import { Failure } from "../../errors.ts";
import type { Invocation } from "../../speech.ts";
import { requireScope } from "../auth.ts";
import { encoderOf } from "../formats.ts";
import { refuseWhileDraining } from "../lifecycle.ts";
import type { CallContext } from "../models.ts";
import type { ApiParts } from "../parts.ts";
import { limitRate } from "../quota/hook.ts";
import { countCodePoints, type SpeechRequest } from "../request.ts";
import type { Listener, Speaking } from "../respond/audio.ts";
import { type EventShape, eventStreamType, respondEvents, withHeartbeats } from "../respond/events.ts";
import { bodyOf, respondStream } from "../respond/stream.ts";
import { Spoken } from "../spoken.ts";
import type { Variant } from "../variants.ts";

/** What every route that speaks has in hand. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: SpeechRequest;
  readonly form: Variant["form"];
}

/** Hooks of every route that speaks: a key that may, within its rate. */
export function maySpeak({ keys, lifecycle, quotas, now }: ApiParts) {
  return [refuseWhileDraining(lifecycle), requireScope(keys, "tts:write", now), limitRate(quotas)];
}

export function profileOf({ directory }: ApiParts): Profile {
  return directory.table()?.profile ?? "self-hosted";
}

/**
 * Admits the request and has it spoken; resolves once the first audio is there, and its headers are set.
 * @throws Failure before the first byte, which may still become a problem document.
 */
export async function startSpeaking(parts: ApiParts, exchange: Exchange): Promise<Speaking> {
  const { request, reply, wanted } = exchange;
  const model = wanted.invocation.modelId;
  request.spoken = spokenBy(parts, exchange);
  parts.license.admit(model);
  const signal = whenClosed(reply.raw);
  const untilOver = (leave: () => void) => {
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  };
  await admit(parts, exchange, untilOver);
  parts.metrics.streamStarted(model);
  untilOver(() => parts.metrics.streamEnded(model));
  return begin(parts, exchange, signal);
}

/**
 * Has another replica speak all of it, for an answer of which no byte is out yet.
 * @param failure of the first one.
 * @throws Failure of that one where no other takes the request.
 */
export async function speakAgain(
  parts: ApiParts,
  exchange: Exchange,
  { speech }: Speaking,
  failure: Failure,
): Promise<Speaking> {
  speech.close();
  exchange.request.spoken?.startAgain();
  return begin(parts, exchange, whenClosed(exchange.reply.raw), { replica: speech.replica, failure });
}

async function begin(
  parts: ApiParts,
  exchange: Exchange,
  signal: AbortSignal,
  after?: CallContext["after"],
): Promise<Speaking> {
  const { request, wanted } = exchange;
  const model = wanted.invocation.modelId;
  const begun = parts.models.speak(withLexicon(parts, exchange), {
    requestId: request.id,
    caller: request.apiKey?.id ?? "",
    signal,
    span: request.span,
    ...(after && { after }),
    onOovs: (words) => noteOovs(parts, exchange, words),
    onAttempt: (failed) => {
      if (failed) parts.metrics.retried({ model, code: failed });
    },
  });
  const prepared = prepareEncoder(exchange);
  try {
    const [speech, encoder] = await Promise.all([begun, prepared]);
    tellOfFirstAudio(exchange);
    return { speech, encoder };
  } catch (error) {
    (await prepared).close?.(); // encoders are lent: refusals must not use them up
    throw error;
  }
}

/** As the caller's team says its words; arcana reads text alone. */
function withLexicon({ lexicon }: ApiParts, { request, wanted }: Exchange): Invocation {
  const { modelId, lang, text } = wanted.invocation;
  if (!request.apiKey || models[modelId].tier !== "mist") return wanted.invocation;
  const entries = lexicon?.find(request.apiKey.team, lang, text);
  return entries ? { ...wanted.invocation, lexicon: entries } : wanted.invocation;
}

function noteOovs({ oovRecorder }: ApiParts, { request, wanted }: Exchange, words: readonly string[]): void {
  const { lang, text } = wanted.invocation;
  if (request.apiKey) oovRecorder.note(request.apiKey, lang, words, text);
}

/** Some encoders take milliseconds to make, which pass while the model makes its first audio. */
async function prepareEncoder({ wanted, form }: Exchange): Promise<Encoder> {
  await nextTurn(); // the invocation leaves first
  return encoderOf(wanted.format, form)(wanted.rate);
}

/** @throws Failure `saturated` or `rate_limited`. */
async function admit(
  { admission, quotas, metrics, clock }: ApiParts,
  { request, wanted }: Exchange,
  untilOver: (leave: () => void) => void,
): Promise<void> {
  const span = request.span.child("admission");
  const arrivedAtMs = clock.monotonicMs();
  try {
    untilOver(admission.enter());
    if (request.apiKey) untilOver(await quotas.enter(request.apiKey));
    span.end();
  } catch (error) {
    span.end(error instanceof Failure ? error.code : "internal");
    throw error;
  }
  const waitedSeconds = (clock.monotonicMs() - arrivedAtMs) / 1000;
  metrics.admitted({ model: wanted.invocation.modelId, waitedSeconds });
}

function spokenBy(parts: ApiParts, { request, reply, wanted, form }: Exchange): Spoken {
  const { invocation, format, rate } = wanted;
  return new Spoken(
    {
      ...{ model: invocation.modelId, voice: invocation.speaker, format, form, rate },
      characters: countCodePoints(invocation.text),
    },
    parts,
    reply,
    request.span,
  );
}

/** Aborts once the answer is over, whether it was sent or the caller hung up. */
function whenClosed(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const close = () => controller.abort(new Failure("request_timeout", "The caller hung up."));
  if (response.destroyed) close();
  else response.once("close", close);
  return controller.signal;
}

function tellOfFirstAudio({ reply, wanted }: Exchange): void {
  const { invocation, rate } = wanted;
  void reply.headers({
    "x-sampling-rate": String(rate),
    "x-model": invocation.modelId,
    "x-voice": invocation.speaker,
    "server-timing": `first-audio;dur=${reply.elapsedTime.toFixed(1)}`,
    "cache-control": "no-store",
  });
}

/** Counts what is sent. */
export function listenerTo({ spoken }: FastifyRequest): Listener {
  return { onEncoded: (samples, bytes, workMs) => spoken?.encoded(samples, bytes, workMs) };
}

/** The answer as a stream of audio; a failure on the way aborts it. */
export function sendStream(
  { request, reply, wanted }: Exchange,
  speaking: Speaking,
  mediaType: string,
): FastifyReply {
  const body = respondStream(speaking, wanted, listenerTo(request));
  return passedOn(reply).type(mediaType).send(noting(request, body));
}

/** The answer as server-sent events of a caller's shape; a failure on the way is an event of its own. */
export function sendEvents(
  parts: ApiParts,
  { request, reply, wanted }: Exchange,
  speaking: Speaking,
  shape: EventShape,
): FastifyReply {
  const events = respondEvents(speaking, wanted, {
    shape,
    listener: listenerTo(request),
    onFailure: (failure) => {
      request.failure = failure;
    },
  });
  const body = bodyOf(withHeartbeats(events, parts.limits.heartbeatMs, parts.clock));
  return passedOn(reply).type(eventStreamType).send(noting(request, body));
}

/** nginx would gather an answer before it passes it on. */
function passedOn(reply: FastifyReply): FastifyReply {
  return reply.header("x-accel-buffering", "no");
}

/** What fails a stream is told to logs and metrics, as its status cannot tell it. */
function noting(request: FastifyRequest, body: Readable): Readable {
  request.spoken?.follow(body);
  return body.once("error", (error) => {
    if (error instanceof Failure) request.failure = error;
    // in HTTP/1.0 a body ends with the connection: this one must not look as if it did
    if (request.raw.httpVersion === "1.0") request.raw.socket.resetAndDestroy();
  });
}
