import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import { resetAfterWrites } from "../../http/reset-connection.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type Outlet, SynthesisRecord } from "../observability/synthesis-record.ts";
import { countCodePoints } from "../request/code-points.ts";
import type { ApiLimits } from "../request/limits.ts";
import type { RequestRules, SpeechRequest } from "../request/speech-request.ts";
import type { Variant } from "../request/variants.ts";
import type { Listener, Speaking } from "../respond/encode-speech.ts";
import { type EventShape, eventStreamType, respondEvents, withHeartbeats } from "../respond/events.ts";
import { bodyOf, respondStream } from "../respond/stream.ts";
import type { SynthesisOrder, Synthesizer } from "./synthesizer.ts";

export interface SpeechServices {
  /**
   * Returns the current rules. The route calls this function for each request, because the available voices
   * change.
   */
  readonly rules: () => RequestRules;
  readonly synthesizer: Synthesizer;
  readonly metrics: Metrics;
  readonly limits: Pick<ApiLimits, "jsonAudioBytes" | "heartbeatMs">;
  readonly clock: Clock;
}

/** One request for speech, and its response. */
export interface HttpExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly speechRequest: SpeechRequest;
  readonly form: Variant["form"];
}

/**
 * Admits the request, starts its synthesis, waits for the first audio, and sets the headers of the response.
 * @throws Failure. The response can still become a problem document.
 */
export async function startSynthesis(services: SpeechServices, exchange: HttpExchange): Promise<Speaking> {
  exchange.request.spoken = createRecord(services, exchange);
  const speaking = await services.synthesizer.start(orderOf(exchange));
  setFirstAudioHeaders(exchange, speaking);
  return speaking;
}

/**
 * Repeats the synthesis on another replica. The caller must not have sent any byte of the response.
 * @param failure the failure of the first replica.
 * @throws `failure` if no other replica accepts the request.
 */
export async function retrySynthesis(
  { synthesizer }: SpeechServices,
  exchange: HttpExchange,
  { speech }: Speaking,
  failure: Failure,
): Promise<Speaking> {
  speech.close();
  exchange.request.spoken?.startAgain();
  const speaking = await synthesizer.begin(orderOf(exchange), { replica: speech.replica, failure });
  setFirstAudioHeaders(exchange, speaking);
  return speaking;
}

function orderOf({ request, reply, speechRequest, form }: HttpExchange): SynthesisOrder {
  const { id: requestId, apiKey, span } = request;
  return { speechRequest, form, requestId, apiKey, span, signal: whenClosed(reply.raw) };
}

function createRecord(
  services: SpeechServices,
  { request, reply, speechRequest, form }: HttpExchange,
): SynthesisRecord {
  const { invocation, format, rate } = speechRequest;
  return new SynthesisRecord(
    {
      ...{ model: invocation.modelId, voice: invocation.speaker, format, form, rate },
      characters: countCodePoints(invocation.text),
    },
    services,
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

/** Returns a signal that aborts when the response was sent or the client disconnected. */
function whenClosed(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const close = () => controller.abort(new Failure("request_timeout", "The client disconnected."));
  if (response.destroyed) close();
  else response.once("close", close);
  return controller.signal;
}

function setFirstAudioHeaders({ reply, speechRequest }: HttpExchange, { speech }: Speaking): void {
  const { invocation, rate } = speechRequest;
  void reply.headers({
    "x-sampling-rate": String(rate),
    "x-model": invocation.modelId,
    "x-voice": invocation.speaker,
    "x-voice-engine": speech.engine,
    "server-timing": `first-audio;dur=${reply.elapsedTime.toFixed(1)}`,
    "cache-control": "no-store",
  });
}

/** Creates a listener that records the encoded audio of the request. */
export function responseTarget({ spoken }: FastifyRequest): Listener {
  return { onEncoded: (samples, bytes, workMs) => spoken?.encoded(samples, bytes, workMs) };
}

/** Sends the response as a stream of audio. A failure of the model aborts the stream. */
export function sendStream(
  { request, reply, speechRequest }: HttpExchange,
  speaking: Speaking,
  mediaType: string,
): FastifyReply {
  const body = respondStream(speaking, speechRequest, responseTarget(request));
  return withoutProxyBuffering(reply).type(mediaType).send(recordStreamFailure(request, body));
}

/** Sends the response as server-sent events. A failure of the model becomes an event. */
export function sendEvents(
  { limits, clock }: SpeechServices,
  { request, reply, speechRequest }: HttpExchange,
  speaking: Speaking,
  shape: EventShape,
): FastifyReply {
  const events = respondEvents(speaking, speechRequest, {
    shape,
    listener: responseTarget(request),
    onFailure: (failure) => {
      request.failure = failure;
    },
  });
  const body = bodyOf(withHeartbeats(events, limits.heartbeatMs, clock));
  return withoutProxyBuffering(reply).type(eventStreamType).send(recordStreamFailure(request, body));
}

/** Disables the buffering of the response in nginx. */
function withoutProxyBuffering(reply: FastifyReply): FastifyReply {
  return reply.header("x-accel-buffering", "no");
}

/** Records a failure during the stream for logs and metrics. The status of the response was already sent. */
function recordStreamFailure(request: FastifyRequest, body: Readable): Readable {
  request.spoken?.follow(body);
  return body.once("error", (error) => {
    if (error instanceof Failure) request.failure = error;
    // In HTTP/1.0, the end of the connection is the end of the body. A reset shows that this body is
    // incomplete.
    if (request.raw.httpVersion === "1.0") resetAfterWrites(request.raw.socket);
  });
}
