import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../contract/errors.ts";
import { type Place, readRequest } from "../request/speech-request.ts";
import { chooseVariant } from "../request/variants.ts";
import type { Speaking } from "../respond/encode-speech.ts";
import { speechEvents } from "../respond/events.ts";
import { holdIn, type JsonAnswer, respondJson } from "../respond/json.ts";
import type { ApiContext } from "../services/api-context.ts";
import { isWorthAnotherReplica } from "../upstream/model-client.ts";
import {
  type HttpExchange,
  profileOf,
  responseTarget,
  retrySynthesis,
  sendEvents,
  sendStream,
  startSynthesisFor,
  synthesisHooks,
} from "./synthesis-routes.ts";

/** `POST /v1/svc-tts` (specification part 4). */
export function addSpeechRoute(app: FastifyInstance, parts: ApiContext): void {
  app.route({
    method: "POST",
    url: "/v1/svc-tts",
    onRequest: [varyByAccept, ...synthesisHooks(parts)],
    handler: (request, reply) => answerSpeechRequest(parts, request, reply, "api"),
  });
}

async function varyByAccept(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  void reply.header("vary", "Accept");
}

/** Responds to an authenticated request. */
export async function answerSpeechRequest(
  parts: ApiContext,
  request: FastifyRequest,
  reply: FastifyReply,
  place: Place,
): Promise<unknown> {
  const variant = chooseVariant(request.headers.accept);
  const wanted = readRequest(request.body, {
    variant,
    profile: profileOf(parts),
    voices: parts.voices.all(),
    highestRate: parts.limits.highestRate,
    place,
  });
  const exchange: HttpExchange = { request, reply, wanted, form: variant.form };
  const speaking = await startSynthesisFor(parts, exchange);
  switch (variant.form) {
    case "json": {
      const { length, body } = await wholeAnswer(parts, exchange, speaking);
      return reply.type("application/json").header("content-length", length).send(body);
    }
    case "events":
      return sendEvents(parts, exchange, speaking, speechEvents(request.id));
    case "stream":
      return sendStream(exchange, speaking, variant.mediaType);
  }
}

/**
 * No byte is sent before the audio is complete, so if a model fails on the way, another replica repeats the
 * synthesis, once.
 */
async function wholeAnswer(
  parts: ApiContext,
  exchange: HttpExchange,
  speaking: Speaking,
): Promise<JsonAnswer> {
  const { request, reply, wanted } = exchange;
  const options = {
    maxBytes: parts.limits.jsonAudioBytes,
    hold: holdIn(request.memory),
    listener: responseTarget(request),
  };
  try {
    return await respondJson(speaking, wanted, options);
  } catch (error) {
    const isRepeatable = error instanceof Failure && isWorthAnotherReplica(error) && !reply.raw.destroyed;
    if (!isRepeatable) throw error;
    return await respondJson(await retrySynthesis(parts, exchange, speaking, error), wanted, options);
  }
}
