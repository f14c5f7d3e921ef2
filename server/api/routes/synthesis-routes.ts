import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Profile } from "../../../config/contract/models.ts";
import { Failure } from "../../contract/errors.ts";
import { requireScope } from "../access/authenticate.ts";
import { limitRate } from "../access/rate-limit.ts";
import { refuseWhileDraining } from "../lifecycle/drain.ts";
import { type Outlet, SynthesisRecord } from "../observability/synthesis-record.ts";
import { countCodePoints } from "../request/code-points.ts";
import type { SpeechRequest } from "../request/speech-request.ts";
import type { Variant } from "../request/variants.ts";
import type { Listener, Speaking } from "../respond/encode-speech.ts";
import { type EventShape, eventStreamType, respondEvents, withHeartbeats } from "../respond/events.ts";
import { bodyOf, respondStream } from "../respond/stream.ts";
import type { ApiContext } from "../services/api-context.ts";
import { repeatSynthesis, type SynthesisOrder, startSynthesis } from "../services/start-synthesis.ts";

/** The common parts of every speech route. */
export interface HttpExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: SpeechRequest;
  readonly form: Variant["form"];
}

/** Hooks of every speech route: authentication and the rate limit. */
export function synthesisHooks({ keys, lifecycle, quotas, now }: ApiContext) {
  return [refuseWhileDraining(lifecycle), requireScope(keys, "tts:write", now), limitRate(quotas)];
}

export function profileOf({ directory }: ApiContext): Profile {
  return directory.table()?.profile ?? "self-hosted";
}

/**
 * Admits the request and starts its synthesis. Resolves once the first audio exists, and its headers are set.
 * @throws Failure before the first byte, which can still become a problem document.
 */
export async function startSynthesisFor(parts: ApiContext, exchange: HttpExchange): Promise<Speaking> {
  exchange.request.spoken = spokenBy(parts, exchange);
  const speaking = await startSynthesis(parts, orderOf(exchange));
  setFirstAudioHeaders(exchange, speaking);
  return speaking;
}

/**
 * Repeats the synthesis on another replica, for a response of which no byte was sent.
 * @param failure of the first replica.
 * @throws the same Failure if no other replica accepts the request.
 */
export async function retrySynthesis(
  parts: ApiContext,
  exchange: HttpExchange,
  { speech }: Speaking,
  failure: Failure,
): Promise<Speaking> {
  speech.close();
  exchange.request.spoken?.startAgain();
  const speaking = await repeatSynthesis(parts, orderOf(exchange), { replica: speech.replica, failure });
  setFirstAudioHeaders(exchange, speaking);
  return speaking;
}

function orderOf({ request, reply, wanted, form }: HttpExchange): SynthesisOrder {
  const { id: requestId, apiKey, span } = request;
  return { wanted, form, requestId, apiKey, span, signal: whenClosed(reply.raw) };
}

function spokenBy(parts: ApiContext, { request, reply, wanted, form }: HttpExchange): SynthesisRecord {
  const { invocation, format, rate } = wanted;
  return new SynthesisRecord(
    {
      ...{ model: invocation.modelId, voice: invocation.speaker, format, form, rate },
      characters: countCodePoints(invocation.text),
    },
    parts,
    outletOf(reply),
    request.span,
  );
}

function outletOf(reply: FastifyReply): Outlet {
  const { raw } = reply;
  const { socket } = raw;
  return {
    elapsedMs: () => reply.elapsedTime,
    written: () => socket?.bytesWritten ?? 0,
    pending: () => raw.writableLength,
  };
}

/** Aborts when the response is over, either sent or abandoned by the client. */
function whenClosed(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const close = () => controller.abort(new Failure("request_timeout", "The caller hung up."));
  if (response.destroyed) close();
  else response.once("close", close);
  return controller.signal;
}

function setFirstAudioHeaders({ reply, wanted }: HttpExchange, { speech }: Speaking): void {
  const { invocation, rate } = wanted;
  void reply.headers({
    "x-sampling-rate": String(rate),
    "x-model": invocation.modelId,
    "x-voice": invocation.speaker,
    "x-voice-engine": speech.engine,
    "server-timing": `first-audio;dur=${reply.elapsedTime.toFixed(1)}`,
    "cache-control": "no-store",
  });
}

/** Counts the sent bytes. */
export function responseTarget({ spoken }: FastifyRequest): Listener {
  return { onEncoded: (samples, bytes, workMs) => spoken?.encoded(samples, bytes, workMs) };
}

/** The response as a stream of audio. A failure on the way aborts it. */
export function sendStream(
  { request, reply, wanted }: HttpExchange,
  speaking: Speaking,
  mediaType: string,
): FastifyReply {
  const body = respondStream(speaking, wanted, responseTarget(request));
  return withoutProxyBuffering(reply).type(mediaType).send(recordStreamFailure(request, body));
}

/** The response as server-sent events. A failure on the way is an event. */
export function sendEvents(
  parts: ApiContext,
  { request, reply, wanted }: HttpExchange,
  speaking: Speaking,
  shape: EventShape,
): FastifyReply {
  const events = respondEvents(speaking, wanted, {
    shape,
    listener: responseTarget(request),
    onFailure: (failure) => {
      request.failure = failure;
    },
  });
  const body = bodyOf(withHeartbeats(events, parts.limits.heartbeatMs, parts.clock));
  return withoutProxyBuffering(reply).type(eventStreamType).send(recordStreamFailure(request, body));
}

/** nginx would buffer the response. */
function withoutProxyBuffering(reply: FastifyReply): FastifyReply {
  return reply.header("x-accel-buffering", "no");
}

/** Reports the failure of a stream to logs and metrics, because its status was already sent. */
function recordStreamFailure(request: FastifyRequest, body: Readable): Readable {
  request.spoken?.follow(body);
  return body.once("error", (error) => {
    if (error instanceof Failure) request.failure = error;
    // In HTTP/1.0 the end of the connection ends a body, and this one must not look complete.
    if (request.raw.httpVersion === "1.0") request.raw.socket.resetAndDestroy();
  });
}
