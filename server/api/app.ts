import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import type { ModelId } from "../../config/contract/models.ts";
import { Failure } from "../errors.ts";
import type { ApiKey } from "../store/key.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Metrics } from "./metrics.ts";
import type { ApiParts } from "./parts.ts";
import { addNotFound, answerClientError, sendProblem } from "./problems.ts";
import { addCatalogueRoutes } from "./routes/catalogue.ts";
import { addHealthRoutes } from "./routes/health.ts";
import { addOpenaiSpeechRoute } from "./routes/openai-speech.ts";
import { addOpenapiRoute } from "./routes/openapi.ts";
import { addSpeechRoute } from "./routes/speech.ts";

declare module "fastify" {
  interface FastifyRequest {
    apiKey: ApiKey | undefined;
    failure: Failure | undefined;
    spoken: { model: ModelId; voice: string; firstAudioMs: number } | undefined;
  }
}

/** The public server, wired and not yet listening. */
export function buildApp(parts: ApiParts): FastifyInstance {
  const app = Fastify({
    loggerInstance: parts.log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    bodyLimit: parts.limits.bodyBytes,
    requestTimeout: parts.limits.requestTimeoutMs,
    http: { maxHeaderSize: parts.limits.headerBytes },
    return503OnClosing: false, // the drain hook answers with a problem document instead
    forceCloseConnections: false,
    genReqId: ({ headers }) => requestId(headers["x-request-id"]),
    frameworkErrors: (error, request, reply) => void sendProblem(reply, request, error),
    clientErrorHandler: (error, socket) => answerClientError(error, socket as Socket, randomUUID()),
  });
  app.decorateRequest("apiKey", undefined);
  app.decorateRequest("failure", undefined);
  app.decorateRequest("spoken", undefined);
  takeJsonOnly(app);
  app.setErrorHandler((error, request, reply) => sendProblem(reply, request, error));
  app.addHook("onRequest", identify(parts.lifecycle));
  addNotFound(app);
  app.addHook("onResponse", report(parts.metrics));
  addSpeechRoute(app, parts);
  addOpenaiSpeechRoute(app, parts);
  addHealthRoutes(app, parts);
  addCatalogueRoutes(app, parts);
  addOpenapiRoute(app);
  return app;
}

/** A caller's own request ID is kept where it is harmless in headers and logs. */
function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
}

/** Bodies are JSON in UTF-8, uncompressed; a body's keys are only ever read by name. */
function takeJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    try {
      done(null, readJson(request, body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

function readJson(request: FastifyRequest, body: Buffer): unknown {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new Failure("unsupported_media_type", "Send the body uncompressed, without Content-Encoding.");
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    // the cause would quote the body, and with it the text to speak
    throw new Failure("malformed_json", "The body is not JSON in UTF-8; check quotes and commas.");
  }
}

function identify(lifecycle: Lifecycle) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    void reply.header("x-request-id", request.id);
    if (lifecycle.isLeaving()) void reply.header("connection", "close");
    if (lifecycle.isDraining() && request.method === "POST") {
      throw new Failure(
        "draining",
        "This server is shutting down; send the request again to reach another.",
        {
          retryAfterSeconds: 1,
        },
      );
    }
  };
}

function report(metrics: Metrics) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const endpoint = request.routeOptions.url ?? "other";
    const code = request.failure?.code;
    metrics.requestDone({ endpoint, method: request.method, status: reply.statusCode, code });
    const facts = {
      method: request.method,
      endpoint,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
      ...(code && { code }),
      ...(request.apiKey && { key: request.apiKey.name }),
      ...request.spoken,
    };
    const isProbe = request.method === "GET" && reply.statusCode < 400;
    request.log[isProbe ? "debug" : "info"](facts, "request");
  };
}
