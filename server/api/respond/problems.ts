import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, Failure, toProblem } from "../../contract/errors.ts";
import type { OpenResponses } from "../../http/open-responses.ts";
import { toOpenaiError } from "../openai/errors.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whether problem documents of the route also contain `error`, for OpenAI's clients. */
    readonly openaiErrors?: boolean;
  }
}

const problemType = "application/problem+json";
/** The default of Retry-After in seconds for status 503. */
const defaultRetryAfter = 1;

/** The public error codes and messages for errors of Fastify. */
const frameworkCodes: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    "unsupported_media_type",
    "Send the body as JSON with the header Content-Type: application/json.",
  ],
  FST_ERR_CTP_BODY_TOO_LARGE: ["body_too_large", "The form is too large; send less data."],
  FST_ERR_MAX_PARAM_LENGTH: ["not_found", "A name in the path is too long; check the URL."],
  FST_ERR_BAD_URL: ["not_found", "The path is not valid; check the percent-encoding of the URL."],
};

/**
 * Converts an error to a failure for the client. An unexpected error becomes `internal`, because its details
 * may be confidential.
 */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const known = frameworkCodes[(error as FastifyError | undefined)?.code ?? ""];
  if (known) return new Failure(known[0], known[1], { cause: error });
  return new Failure(
    "internal",
    "An unexpected error occurred; the administrator finds the cause in the server's log by the request ID.",
    {
      cause: error,
    },
  );
}

export function sendProblem(reply: FastifyReply, request: FastifyRequest, error: unknown): FastifyReply {
  const failure = toFailure(error);
  request.failure = failure;
  if (failure.code === "internal")
    request.log.error({ err: failure.cause }, "an unexpected error occurred; report it with this log");
  for (const [name, value] of Object.entries(problemHeaders(failure))) void reply.header(name, value);
  const problem = {
    ...toProblem(failure, request.id),
    ...(request.routeOptions.config.openaiErrors && { error: toOpenaiError(failure) }),
  };
  return reply
    .code(failure.status)
    .type(problemType)
    .send(Buffer.from(JSON.stringify(problem))); // Fastify would add a charset to a string.
}

/** Returns the headers of an error response, which do not depend on the format of the body. */
export function problemHeaders(failure: Failure): Record<string, string> {
  const headers: Record<string, string> = { "cache-control": "no-store" };
  const retryAfter = failure.retryAfterSeconds ?? (failure.status === 503 ? defaultRetryAfter : undefined);
  if (retryAfter !== undefined) headers["retry-after"] = String(retryAfter);
  if (failure.code === "draining") headers.connection = "close";
  return headers;
}

/**
 * Responds to requests without a route: with 405 and `Allow` if the path supports another method, otherwise
 * with 404. The server does not read the body of these requests.
 */
export function addNotFound(app: FastifyInstance): void {
  const methods = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    for (const name of [method].flat()) known.add(name);
    methods.set(url, known);
  });
  app.addHook("onRequest", async (request, reply) => {
    if (!request.is404) return;
    const allowed = methods.get(request.url.split("?", 1)[0] ?? "");
    if (!allowed) throw new Failure("not_found", "This path does not exist; check the URL.");
    const list = [...allowed].join(", ");
    void reply.header("allow", list);
    throw new Failure("method_not_allowed", `This path does not support ${request.method}; use ${list}.`);
  });
}

const clientErrors: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ["headers_too_large", "The headers are too large; send fewer or shorter headers."],
  ERR_HTTP_REQUEST_TIMEOUT: [
    "request_timeout",
    "The request did not arrive in time; send the whole request again.",
  ],
};

/**
 * Responds to invalid HTTP directly on the connection, because an invalid request never reaches a route. If
 * another response is in progress, the function sends nothing.
 * @param refuse records the failure, and returns the ID of the request.
 */
export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  answers: OpenResponses,
  refuse: (failure: Failure) => string,
): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const failure = clientFailure(error);
  const requestId = refuse(failure);
  const body = JSON.stringify(toProblem(failure, requestId));
  answers.refuse(
    socket,
    `HTTP/1.1 ${failure.status} Error\r\ncontent-type: ${problemType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
  );
}

function clientFailure(error: NodeJS.ErrnoException): Failure {
  const [code, detail] = clientErrors[error.code ?? ""] ?? [
    "malformed_http",
    "The request is not valid HTTP/1.1; check the client or the proxy.",
  ];
  return new Failure(code, detail);
}
