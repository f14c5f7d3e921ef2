import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import type { Lifecycle } from "../api/lifecycle/drain.ts";
import { logRequests, reportOnceOver } from "../api/observability/access-log.ts";
import type { SynthesisRecord } from "../api/observability/synthesis-record.ts";
import { bodyOptions, takeJsonOnly } from "../api/request/body.ts";
import { addNotFound, answerClientError, sendProblem } from "../api/respond/problems.ts";
import { addCatalogueRoutes, addOpenapiRoute } from "../api/routes/catalogue.ts";
import { addHealthRoutes } from "../api/routes/health.ts";
import { addKeyRoutes } from "../api/routes/keys.ts";
import { addLoadRoute } from "../api/routes/load.ts";
import { addOovsRoute } from "../api/routes/oovs.ts";
import { addOpenaiSpeechRoute } from "../api/routes/openai-speech.ts";
import { addSocketRoutes, isSocketUpgrade } from "../api/routes/sockets.ts";
import { addSpeechRoute } from "../api/routes/speech.ts";
import type { ApiContext } from "../api/services/api-context.ts";
import { Failure } from "../contract/errors.ts";
import type { DashboardContext } from "../dashboard/pages/dashboard-context.ts";
import { addDashboard } from "../dashboard/routes.ts";
import { OpenResponses } from "../http/open-responses.ts";
import type { ApiKey } from "../store/keys/key.ts";
import type { Span } from "../tracing/span.ts";

declare module "fastify" {
  interface FastifyRequest {
    apiKey: ApiKey | undefined;
    failure: Failure | undefined;
    spoken: SynthesisRecord | undefined;
    span: Span;
    /** The connection became a WebSocket. */
    isUpgraded: boolean;
  }
}

/** Headers are small: who sends them slower holds a connection for nothing. */
const headersTimeoutMs = 15_000;
/** Longest escaped name in a path. */
const longestName = 1024;
/** How often slow senders are looked for. */
const slowCheckMs = 5_000;

/** The public server, wired and not yet listening. @param dashboard undefined where it is off. */
export function buildApp(parts: ApiContext, dashboard: DashboardContext | undefined): FastifyInstance {
  const app = Fastify({
    loggerInstance: parts.log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    trustProxy: [...parts.trustedProxies],
    requestTimeout: parts.limits.requestTimeoutMs,
    http: {
      maxHeaderSize: parts.limits.headerBytes,
      headersTimeout: Math.min(headersTimeoutMs, parts.limits.requestTimeoutMs),
      connectionsCheckingInterval: Math.min(slowCheckMs, parts.limits.requestTimeoutMs / 2),
      requireHostHeader: false, // Node's own answer has no problem document
      shouldUpgradeCallback: isSocketUpgrade,
    },
    return503OnClosing: false, // the drain hook answers with a problem document instead
    forceCloseConnections: false,
    routerOptions: { maxParamLength: longestName },
    genReqId: ({ headers }) => requestId(headers["x-request-id"]),
    frameworkErrors: (error, request, reply) => {
      reportOnceOver(parts.metrics, request, reply); // no hook is run for it
      void sendProblem(reply, request, error);
    },
    clientErrorHandler: (error, socket) =>
      answerClientError(error, socket as Socket, answers, refuser(parts)),
  });
  const answers = new OpenResponses(app.server);
  app.decorateRequest("apiKey", undefined);
  app.decorateRequest("failure", undefined);
  app.decorateRequest("spoken", undefined);
  app.decorateRequest("isUpgraded", false);
  takeJsonOnly(app, { ...bodyOptions(parts), budget: parts.memory });
  app.setErrorHandler((error, request, reply) => sendProblem(reply, request, error));
  logRequests(app, parts);
  app.addHook("onRequest", identify(parts.lifecycle));
  addNotFound(app);
  addSpeechRoute(app, parts);
  addOpenaiSpeechRoute(app, parts);
  addSocketRoutes(app, parts);
  addHealthRoutes(app, parts);
  addLoadRoute(app, parts);
  addCatalogueRoutes(app, parts);
  addOovsRoute(app, parts);
  addKeyRoutes(app, parts);
  addOpenapiRoute(app, parts);
  if (dashboard) addDashboard(app, dashboard, parts);
  return app;
}

/** Tells log and metrics of what was not even HTTP. */
function refuser({ log, metrics }: ApiContext) {
  return ({ code, status }: Failure): string => {
    const requestId = randomUUID();
    metrics.answered({ endpoint: undefined, method: undefined, status, code, seconds: undefined });
    log.info({ requestId, status, code }, "request");
    return requestId;
  };
}

/** A caller's own request ID is kept where it is harmless in headers and logs. */
function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
}

function identify(lifecycle: Lifecycle) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    void reply.header("x-request-id", request.id);
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new Failure("malformed_http", "A request in HTTP/1.1 has the header Host.");
    }
    if (lifecycle.isLeaving()) void reply.header("connection", "close");
    else lifecycle.leaveOpen(request.raw.socket);
  };
}
