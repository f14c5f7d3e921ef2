import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../contract/errors.ts";
import type { Guard } from "../access/authenticate.ts";
import { type Place, readRequest } from "../request/speech-request.ts";
import { chooseVariant } from "../request/variants.ts";
import type { Speaking } from "../respond/encode-speech.ts";
import { speechEvents } from "../respond/events.ts";
import { holdIn, type JsonAnswer, respondJson } from "../respond/json.ts";
import {
  type HttpExchange,
  responseTarget,
  retrySynthesis,
  type SpeechServices,
  sendEvents,
  sendStream,
  startSynthesis,
} from "../synthesis/http-exchange.ts";
import { isWorthAnotherReplica } from "../upstream/model-client.ts";

export interface SpeechRouteOptions {
  readonly guard: Guard;
  readonly speech: SpeechServices;
}

/** Serves `POST /v1/svc-tts` (specification part 4). */
export const speechRoute: FastifyPluginAsync<SpeechRouteOptions> = async (app, { guard, speech }) => {
  app.post("/v1/svc-tts", { onRequest: [varyByAccept, ...guard] }, (request, reply) =>
    answerSpeechRequest(speech, request, reply, "api"),
  );
};

async function varyByAccept(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  void reply.header("vary", "Accept");
}

/** Responds to an authenticated speech request. */
export async function answerSpeechRequest(
  services: SpeechServices,
  request: FastifyRequest,
  reply: FastifyReply,
  place: Place,
): Promise<unknown> {
  const variant = chooseVariant(request.headers.accept);
  const speechRequest = readRequest(request.body, { ...services.rules(), variant, place });
  const exchange: HttpExchange = { request, reply, speechRequest, form: variant.form };
  const speaking = await startSynthesis(services, exchange);
  switch (variant.form) {
    case "json": {
      const { length, body } = await wholeAnswer(services, exchange, speaking);
      return reply.type("application/json").header("content-length", length).send(body);
    }
    case "events":
      return sendEvents(services, exchange, speaking, speechEvents(request.id));
    case "stream":
      return sendStream(exchange, speaking, variant.mediaType);
  }
}

/**
 * Creates a JSON response. No byte is sent before the audio is complete, so a synthesis that fails is repeated once
 * on another replica.
 */
async function wholeAnswer(
  services: SpeechServices,
  exchange: HttpExchange,
  speaking: Speaking,
): Promise<JsonAnswer> {
  const { request, reply, speechRequest } = exchange;
  const options = {
    maxBytes: services.limits.jsonAudioBytes,
    hold: holdIn(request.memory),
    listener: responseTarget(request),
  };
  try {
    return await respondJson(speaking, speechRequest, options);
  } catch (error) {
    const isRepeatable = error instanceof Failure && isWorthAnotherReplica(error) && !reply.raw.destroyed;
    if (!isRepeatable) throw error;
    return await respondJson(
      await retrySynthesis(services, exchange, speaking, error),
      speechRequest,
      options,
    );
  }
}
