import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import type { Clock } from "../../lib/clock.ts";
import type { Lifecycle } from "../api/lifecycle/drain.ts";
import { logRequests, reportOnceOver } from "../api/observability/access-log.ts";
import type { Metrics } from "../api/observability/metrics.ts";
import type { SynthesisRecord } from "../api/observability/synthesis-record.ts";
import { bodyOptions, takeJsonOnly } from "../api/request/body.ts";
import type { ApiLimits } from "../api/request/limits.ts";
import { createMemoryBudget } from "../api/request/memory-budget.ts";
import { addNotFound, answerClientError, sendProblem } from "../api/respond/problems.ts";
import { isSocketUpgrade } from "../api/routes/sockets.ts";
import { Failure } from "../contract/errors.ts";
import { OpenResponses } from "../http/open-responses.ts";
import type { ApiKey } from "../store/keys/key.ts";
import type { UsageRecorder } from "../store/usage.ts";
import type { Span, Tracing } from "../tracing/span.ts";

declare module "fastify" {
  interface FastifyRequest {
    apiKey: ApiKey | undefined;
    failure: Failure | undefined;
    spoken: SynthesisRecord | undefined;
    span: Span;
    /** Whether the connection became a WebSocket. */
    isUpgraded: boolean;
  }
}

/**
 * The longest time for the headers to arrive. Headers are small, so a slower client only occupies a
 * connection.
 */
const headersTimeoutMs = 15_000;
/** The longest path parameter, such as the escaped name of an API key. */
const longestName = 1024;
/** The interval of the check for slow clients. */
const slowCheckMs = 5_000;

interface AppServices {
  readonly log: FastifyBaseLogger;
  readonly limits: ApiLimits;
  readonly lifecycle: Lifecycle;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  /** The recorder of the usage of API keys. The value is undefined if the settings name no database. */
  readonly usage: UsageRecorder | undefined;
  readonly clock: Clock;
}

/**
 * Creates the public server with the behavior that all routes share: limits, request IDs, error responses,
 * log and metrics. The server does not listen yet.
 * @param trustedProxies addresses and networks of proxies whose `X-Forwarded-For` is trusted.
 */
export function createApp(services: AppServices, trustedProxies: readonly string[] = []): FastifyInstance {
  const { log, limits, clock } = services;
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    trustProxy: [...trustedProxies],
    requestTimeout: limits.requestTimeoutMs,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: Math.min(headersTimeoutMs, limits.requestTimeoutMs),
      connectionsCheckingInterval: Math.min(slowCheckMs, limits.requestTimeoutMs / 2),
      requireHostHeader: false, // The server checks the header itself, to respond with a problem document.
      shouldUpgradeCallback: isSocketUpgrade,
    },
    return503OnClosing: false, // The drain hook sends a problem document instead.
    forceCloseConnections: false,
    routerOptions: { maxParamLength: longestName },
    genReqId: ({ headers }) => requestId(headers["x-request-id"]),
    frameworkErrors: (error, request, reply) => {
      reportOnceOver(services.metrics, request, reply); // Fastify runs no hooks for these errors.
      void sendProblem(reply, request, error);
    },
    clientErrorHandler: (error, socket) =>
      answerClientError(error, socket as Socket, openResponses, reportInvalidHttp(services)),
  });
  const openResponses = new OpenResponses(app.server);
  app.decorateRequest("apiKey", undefined);
  app.decorateRequest("failure", undefined);
  app.decorateRequest("spoken", undefined);
  app.decorateRequest("isUpgraded", false);
  const memory = createMemoryBudget(limits.heldBytes, limits.heldWaitMs, clock);
  takeJsonOnly(app, { ...bodyOptions(limits, clock), budget: memory });
  app.setErrorHandler((error, request, reply) => sendProblem(reply, request, error));
  logRequests(app, services);
  app.addHook("onRequest", identify(services.lifecycle));
  addNotFound(app);
  return app;
}

/** Returns a function that logs and counts invalid HTTP, and returns a new request ID. */
function reportInvalidHttp({ log, metrics }: AppServices) {
  return ({ code, status }: Failure): string => {
    const requestId = randomUUID();
    metrics.answered({ endpoint: undefined, method: undefined, status, code, seconds: undefined });
    log.info({ requestId, status, code }, "request");
    return requestId;
  };
}

/** Returns the client's request ID if that ID is safe in headers and logs, and otherwise a new ID. */
function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
}

function identify(lifecycle: Lifecycle) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    void reply.header("x-request-id", request.id);
    if (request.headers.host === undefined && request.raw.httpVersion === "1.1") {
      throw new Failure("malformed_http", "An HTTP/1.1 request must have the header Host.");
    }
    if (lifecycle.isLeaving()) void reply.header("connection", "close");
    else lifecycle.leaveOpen(request.raw.socket);
  };
}
