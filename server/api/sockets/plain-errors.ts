import type { FastifyReply, FastifyRequest } from "fastify";
import type { Failure } from "../../contract/errors.ts";
import { problemHeaders, toFailure } from "../respond/problems.ts";

/** The default of Retry-After in seconds for status 429. */
const defaultRetryAfter = 1;

/**
 * Responds to a rejected upgrade with a short plain text. The response is no problem document, because
 * published clients show or compare this text.
 */
export function sendPlainError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = toFailure(error);
  request.failure = failure;
  if (failure.code === "internal")
    request.log.error({ err: failure.cause }, "an unexpected error occurred; report it with this log");
  if (failure.status === 429) void reply.header("retry-after", String(defaultRetryAfter));
  if (failure.status === 426) void reply.headers({ upgrade: "websocket", connection: "upgrade" });
  void reply
    .code(failure.status)
    .headers(problemHeaders(failure))
    .type("text/plain; charset=utf-8")
    .send(upgradeErrorText(failure, request.headers.authorization));
}

/**
 * Returns the text of the response to a rejected upgrade.
 * @param authorization the header `Authorization` of the upgrade.
 */
export function upgradeErrorText(failure: Failure, authorization: string | undefined): string {
  switch (failure.status) {
    case 401:
      if (authorization === undefined) return "Missing Authorization header";
      return /^\w+ *$/.test(authorization.replace("-", "")) ? "empty apikey" : "invalid api key";
    case 403:
      return "access forbidden";
    case 429:
      return "Currently at websocket limit";
    case 500:
      return "internal error";
    default:
      return failure.message;
  }
}
