import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { requireScope } from "../auth.ts";
import type { ApiParts } from "../parts.ts";
import { readRequest } from "../request.ts";
import { speechEvents } from "../respond/events.ts";
import { respondJson } from "../respond/json.ts";
import { chooseVariant } from "../variants.ts";
import { type Exchange, listenerTo, profileOf, sendEvents, sendStream, startSpeaking } from "./speaking.ts";

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
  const exchange: Exchange = { request, reply, wanted, form: variant.form };
  const speech = await startSpeaking(parts, exchange);
  switch (variant.form) {
    case "json": {
      const body = await respondJson(speech, wanted, parts.limits.jsonAudioBytes, listenerTo(parts, wanted));
      return reply.type("application/json").send(body);
    }
    case "events":
      return sendEvents(parts, exchange, speech, speechEvents(request.id));
    case "stream":
      return sendStream(parts, exchange, speech, variant.mediaType);
  }
}
