import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Profile } from "../../../config/contract/models.ts";
import { Failure } from "../../errors.ts";
import { requireScope } from "../auth.ts";
import type { Speech } from "../models.ts";
import type { ApiParts } from "../parts.ts";
import { readRequest, type SpeechRequest } from "../request.ts";
import { respondJson } from "../respond/json.ts";
import { respondStream } from "../respond/stream.ts";
import { chooseVariant, type Variant } from "../variants.ts";

/** `POST /v1/svc-tts` (specification part 4). */
export function addSpeechRoute(app: FastifyInstance, parts: ApiParts): void {
  app.route({
    method: "POST",
    url: "/v1/svc-tts",
    onRequest: [varyByAccept, requireScope(parts.keys, "tts:write", parts.now)],
    handler: (request, reply) => speak(parts, request, reply),
  });
}

async function varyByAccept(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  void reply.header("vary", "Accept");
}

async function speak(parts: ApiParts, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const variant = chooseVariant(request.headers.accept);
  const wanted = readRequest(request.body, { variant, profile: profileOf(parts), voices: parts.voices });
  const { modelId } = wanted.invocation;
  parts.license.admit(modelId);
  const leave = parts.admission.enter();
  parts.metrics.streamStarted(modelId);
  const signal = whenClosed(reply.raw, () => {
    leave();
    parts.metrics.streamEnded(modelId);
  });
  const speech = await parts.models.speak(wanted.invocation, { requestId: request.id, signal });
  tellOfFirstAudio(parts, request, reply, variant, wanted);
  return respond(parts, request, reply, variant, wanted, speech);
}

function profileOf({ directory }: ApiParts): Profile {
  return directory.table()?.profile ?? "self-hosted";
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

function tellOfFirstAudio(
  { metrics }: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  variant: Variant,
  { invocation, format, rate }: SpeechRequest,
): void {
  const elapsedMs = reply.elapsedTime;
  metrics.firstAudio({
    model: invocation.modelId,
    variant: `${variant.form}-${format}`,
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

async function respond(
  { metrics, limits }: ApiParts,
  request: FastifyRequest,
  reply: FastifyReply,
  variant: Variant,
  wanted: SpeechRequest,
  speech: Speech,
): Promise<unknown> {
  const onSamples = (count: number) => {
    metrics.audioSent({ model: wanted.invocation.modelId, seconds: count / wanted.rate });
  };
  if (variant.form === "json") {
    const body = await respondJson(speech, wanted, limits.jsonAudioBytes, onSamples);
    return reply.type("application/json").send(body);
  }
  const stream = respondStream(speech, wanted, onSamples);
  stream.once("error", (error) => {
    if (error instanceof Failure) request.failure = error;
  });
  return reply.type(variant.mediaType).send(stream);
}
