import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure, toProblem } from "../contract/errors.ts";
import { orcaHeader } from "../contract/wire.ts";
import type { Admission } from "./admission.ts";
import { orcaReport } from "./orca.ts";
import { asFailure } from "./synthesis.ts";

/**
 * The size limit of an invocation. arcana accepts texts of any length, and the API tier limits the texts of
 * its clients.
 */
export const maxBodyBytes = 64 * 1024 * 1024;

/** Creates an error handler that responds with a problem document and the load of this replica. */
export function answerFailures(admission: Admission) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    // The client has disconnected, so no response is sent and no failure is counted.
    if (reply.raw.closed) return reply.hijack();
    const failure = fromFastify(error) ?? asFailure(error);
    reportFailure(failure, request);
    if (failure.retryAfterSeconds !== undefined) {
      reply.header("retry-after", String(failure.retryAfterSeconds));
    }
    return reply
      .code(failure.status)
      .type("application/problem+json")
      .header(orcaHeader, orcaReport(admission))
      .send(toProblem(failure, request.id));
  };
}

/**
 * Stores a failure for the log line of the request. A failure of the server is also logged with its cause.
 */
export function reportFailure(failure: Failure, request: FastifyRequest): void {
  request.refused = failure;
  if (failure.status >= 500 && failure.code !== "saturated") {
    request.log.error({ code: failure.code, err: failure }, "a request failed");
  }
}

export function draining(): Failure {
  return new Failure("draining", "This replica is shutting down. Send the request again.", {
    retryAfterSeconds: 1,
  });
}

/** Converts Fastify's errors for invalid requests. Returns undefined for any other error. */
function fromFastify(error: unknown): Failure | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Failure(
        "unsupported_media_type",
        "The content type of the body is not supported. Send the body as application/json.",
        { cause: error },
      );
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Failure("body_too_large", `The body has more than ${maxBodyBytes} bytes. Send less text.`, {
        cause: error,
      });
    case "FST_ERR_CTP_INVALID_JSON_BODY":
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return new Failure("malformed_json", "The body is not JSON. Send one JSON object.", { cause: error });
    default:
      return undefined;
  }
}
