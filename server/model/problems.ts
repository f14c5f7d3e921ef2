import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure, toProblem } from "../contract/errors.ts";
import { orcaHeader } from "../contract/wire.ts";
import type { Admission } from "./admission.ts";
import { orcaReport } from "./orca.ts";
import { asFailure } from "./synthesis.ts";

/** arcana accepts texts of any length; the API tier limits the texts of its clients. */
export const maxBodyBytes = 64 * 1024 * 1024;

/** Responds to a failure with a problem document and the load of this replica. */
export function answerFailures(admission: Admission) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (reply.raw.closed) return reply.hijack(); // The client disconnected: no response, no failure.
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

/** Kept for the request's own log line. An unexpected error is logged with its cause. */
export function reportFailure(failure: Failure, request: FastifyRequest): void {
  request.refused = failure;
  if (failure.status >= 500 && failure.code !== "saturated") {
    request.log.error({ code: failure.code, err: failure }, "request failed");
  }
}

export function draining(): Failure {
  return new Failure("draining", "This replica is shutting down; send the request again.", {
    retryAfterSeconds: 1,
  });
}

/** Replaces Fastify's own messages about invalid requests. */
function fromFastify(error: unknown): Failure | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Failure("unsupported_media_type", "Send the body as application/json.", { cause: error });
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Failure("body_too_large", `The body may have ${maxBodyBytes} bytes.`, { cause: error });
    case "FST_ERR_CTP_INVALID_JSON_BODY":
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return new Failure("malformed_json", "Send one JSON object.", { cause: error });
    default:
      return undefined;
  }
}
