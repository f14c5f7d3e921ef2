import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, Failure, toProblem } from "../../contract/errors.ts";
import type { OpenResponses } from "../../http/open-responses.ts";
import { toOpenaiError } from "../openai/errors.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Problem documents of the route also hold `error`, which OpenAI's clients read. */
    readonly openaiErrors?: boolean;
  }
}

const problemType = "application/problem+json";
/** Seconds, where a failure that passes by itself does not say when. */
const defaultRetryAfter = 1;

/** Fastify's own failures, by what they mean to a caller. */
const frameworkCodes: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    "unsupported_media_type",
    "Send the body as JSON with the header Content-Type: application/json.",
  ],
  FST_ERR_CTP_BODY_TOO_LARGE: ["body_too_large", "This form is too large; send less."],
  FST_ERR_MAX_PARAM_LENGTH: ["not_found", "The path is longer than any name here."],
  FST_ERR_BAD_URL: ["not_found", "The path is not a valid URL path."],
};

/** Every failure as the caller sees it; one that nobody foresaw is `internal` and tells nothing of the inside. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const known = frameworkCodes[(error as FastifyError | undefined)?.code ?? ""];
  if (known) return new Failure(known[0], known[1], { cause: error });
  return new Failure("internal", "Something went wrong here; the request ID finds it in the logs.", {
    cause: error,
  });
}

export function sendProblem(reply: FastifyReply, request: FastifyRequest, error: unknown): FastifyReply {
  const failure = toFailure(error);
  request.failure = failure;
  if (failure.code === "internal") request.log.error({ err: failure.cause }, "unforeseen failure");
  for (const [name, value] of Object.entries(problemHeaders(failure))) void reply.header(name, value);
  const problem = {
    ...toProblem(failure, request.id),
    ...(request.routeOptions.config.openaiErrors && { error: toOpenaiError(failure) }),
  };
  return reply
    .code(failure.status)
    .type(problemType)
    .send(Buffer.from(JSON.stringify(problem))); // a string would gain a charset
}

/** Headers of an answer that tells of a failure, in whatever form. */
export function problemHeaders(failure: Failure): Record<string, string> {
  const headers: Record<string, string> = { "cache-control": "no-store" };
  const retryAfter = failure.retryAfterSeconds ?? (failure.status === 503 ? defaultRetryAfter : undefined);
  if (retryAfter !== undefined) headers["retry-after"] = String(retryAfter);
  if (failure.code === "draining") headers.connection = "close";
  return headers;
}

/** Answers 404, or 405 with `Allow` where the path takes another method; a body is not read first. */
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
    if (!allowed) throw new Failure("not_found", "There is nothing at this path.");
    const list = [...allowed].join(", ");
    void reply.header("allow", list);
    throw new Failure("method_not_allowed", `This path takes ${list}.`);
  });
}

const clientErrors: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ["headers_too_large", "Send fewer or shorter headers."],
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "Send the whole request faster."],
};

/**
 * Answers bytes that are not valid HTTP on the bare socket, unless an answer is under way.
 * @param refuse told of the failure; gives the request's id.
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
    "The request is not valid HTTP/1.1.",
  ];
  return new Failure(code, detail);
}
