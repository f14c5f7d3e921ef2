import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { toOpenaiError } from "../openai/errors.ts";
import { readOpenaiRequest } from "../openai/request.ts";
import { countCodePoints } from "../request/code-points.ts";
import { type EventShape, eventText } from "../respond/events.ts";
import type { ApiContext } from "../services/api-context.ts";
import { profileOf, sendEvents, sendStream, startSynthesisFor, synthesisHooks } from "./synthesis-routes.ts";

/** `POST /v1/audio/speech` in OpenAI's shape, so that its clients need only another base URL. */
export function addOpenaiSpeechRoute(app: FastifyInstance, parts: ApiContext): void {
  app.route({
    method: "POST",
    url: "/v1/audio/speech",
    config: { openaiErrors: true },
    onRequest: synthesisHooks(parts),
    handler: (request, reply) => speak(parts, request, reply),
  });
}

async function speak(parts: ApiContext, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const wanted = readOpenaiRequest(request.body, { profile: profileOf(parts), voices: parts.voices.all() });
  const exchange = { request, reply, wanted, form: wanted.form };
  const speaking = await startSynthesisFor(parts, exchange);
  if (wanted.form === "stream") return sendStream(exchange, speaking, wanted.mediaType);
  return sendEvents(parts, exchange, speaking, openaiEvents(wanted.invocation.text));
}

/**
 * OpenAI's events have their name in the data. `usage` counts characters instead of tokens; its clients
 * require the three numbers.
 */
function openaiEvents(text: string): EventShape {
  const event = (type: string, more: object) => eventText(type, { type, ...more });
  const characters = countCodePoints(text);
  const usage = { input_tokens: characters, output_tokens: 0, total_tokens: characters };
  return {
    chunk: (audio) => event("speech.audio.delta", { audio }),
    finished: () => event("speech.audio.done", { usage }),
    failed: (failure) => event("error", { error: toOpenaiError(failure) }),
  };
}
