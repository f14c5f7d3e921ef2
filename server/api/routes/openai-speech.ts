import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { toOpenaiError } from "../openai/errors.ts";
import { readOpenaiRequest } from "../openai/request.ts";
import { countCodePoints } from "../request/code-points.ts";
import { type EventShape, eventText } from "../respond/events.ts";
import { type SpeechServices, sendEvents, sendStream, startSynthesis } from "../synthesis/http-exchange.ts";
import type { SpeechRouteOptions } from "./speech.ts";

/**
 * Serves `POST /v1/audio/speech`, the OpenAI-compatible API. OpenAI's clients need only a different base URL.
 */
export const openaiSpeechRoute: FastifyPluginAsync<SpeechRouteOptions> = async (app, { guard, speech }) => {
  const options = { onRequest: guard, config: { openaiErrors: true } };
  app.post("/v1/audio/speech", options, (request, reply) => speak(speech, request, reply));
};

async function speak(
  services: SpeechServices,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const speechRequest = readOpenaiRequest(request.body, services.rules());
  const exchange = { request, reply, speechRequest, form: speechRequest.form };
  const speaking = await startSynthesis(services, exchange);
  if (speechRequest.form === "stream") return sendStream(exchange, speaking, speechRequest.mediaType);
  return sendEvents(services, exchange, speaking, openaiEvents(speechRequest.invocation.text));
}

/**
 * Formats the events of OpenAI's protocol, which repeat the name of the event in the data. OpenAI's clients
 * require the three numbers of `usage`. The numbers count characters, because this server has no tokens of
 * text.
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
