import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Profile } from "../../../config/contract/models.ts";
import { Failure } from "../../errors.ts";
import type { Speech } from "../models.ts";
import type { ApiParts } from "../parts.ts";
import type { SpeechRequest } from "../request.ts";
import type { Listener } from "../respond/audio.ts";
import { type EventShape, eventStreamType, respondEvents, withHeartbeats } from "../respond/events.ts";
import { bodyOf, respondStream } from "../respond/stream.ts";
import type { Variant } from "../variants.ts";

/** What every route that speaks has in hand. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: SpeechRequest;
  readonly form: Variant["form"];
}

export function profileOf({ directory }: ApiParts): Profile {
  return directory.table()?.profile ?? "self-hosted";
}

/**
 * Admits the request and has it spoken; resolves once the first audio is there, and its headers are set.
 * @throws Failure before the first byte, which may still become a problem document.
 */
export async function startSpeaking(parts: ApiParts, exchange: Exchange): Promise<Speech> {
  const { request, reply, wanted } = exchange;
  const { modelId } = wanted.invocation;
  parts.license.admit(modelId);
  const leave = parts.admission.enter();
  parts.metrics.streamStarted(modelId);
  const signal = whenClosed(reply.raw, () => {
    leave();
    parts.metrics.streamEnded(modelId);
  });
  const speech = await parts.models.speak(wanted.invocation, { requestId: request.id, signal });
  tellOfFirstAudio(parts, exchange);
  return speech;
}

/** Aborts once the answer is over, whether it was sent or the caller hung up. */
function whenClosed(response: ServerResponse, over: () => void): AbortSignal {
  const controller = new AbortController();
  const close = () => {
    controller.abort(new Failure("request_timeout", "The caller hung up."));
    over();
  };
  if (response.destroyed) close();
  else response.once("close", close);
  return controller.signal;
}

function tellOfFirstAudio({ metrics }: ApiParts, { request, reply, wanted, form }: Exchange): void {
  const { invocation, format, rate } = wanted;
  const elapsedMs = reply.elapsedTime;
  metrics.firstAudio({
    model: invocation.modelId,
    variant: `${form}-${format}`,
    seconds: elapsedMs / 1000,
  });
  request.spoken = {
    model: invocation.modelId,
    voice: invocation.speaker,
    firstAudioMs: Math.round(elapsedMs),
  };
  void reply.headers({
    "x-sampling-rate": String(rate),
    "x-model": invocation.modelId,
    "x-voice": invocation.speaker,
    "server-timing": `first-audio;dur=${elapsedMs.toFixed(1)}`,
    "cache-control": "no-store",
  });
}

/** Counts what is sent. */
export function listenerTo({ metrics }: ApiParts, { invocation, rate }: SpeechRequest): Listener {
  return {
    onSamples: (count) => metrics.audioSent({ model: invocation.modelId, seconds: count / rate }),
  };
}

/** The answer as a stream of audio; a failure on the way aborts it. */
export function sendStream(
  parts: ApiParts,
  { request, reply, wanted }: Exchange,
  speech: Speech,
  mediaType: string,
): FastifyReply {
  const body = respondStream(speech, wanted, listenerTo(parts, wanted));
  return reply.type(mediaType).send(noting(request, body));
}

/** The answer as server-sent events of a caller's shape; a failure on the way is an event of its own. */
export function sendEvents(
  parts: ApiParts,
  { request, reply, wanted }: Exchange,
  speech: Speech,
  shape: EventShape,
): FastifyReply {
  const events = respondEvents(speech, wanted, {
    shape,
    listener: listenerTo(parts, wanted),
    onFailure: (failure) => {
      request.failure = failure;
    },
  });
  const body = bodyOf(withHeartbeats(events, parts.limits.heartbeatMs));
  void reply.header("x-accel-buffering", "no"); // nginx would gather events before it passes them on
  return reply.type(eventStreamType).send(noting(request, body));
}

/** What fails a stream is told to logs and metrics, as its status cannot tell it. */
function noting(request: FastifyRequest, body: Readable): Readable {
  return body.once("error", (error) => {
    if (error instanceof Failure) request.failure = error;
  });
}
