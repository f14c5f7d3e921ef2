/**
 * All errors that a client can receive, as RFC 9457 problem details. Codes never change. The code is the only
 * part of an error that becomes a metric label. `docs/reference/errors.md` documents each code.
 */
const registry = {
  malformed_http: { status: 400, title: "The request is not valid HTTP" },
  malformed_json: { status: 400, title: "The body is not JSON" },
  invalid_request: { status: 400, title: "A field of the request is invalid" },
  unauthorized: { status: 401, title: "The API key is missing or not valid" },
  insufficient_scope: { status: 403, title: "The API key lacks the required scope" },
  cross_site: { status: 403, title: "The request came from another site" },
  license_required: { status: 403, title: "The license does not allow synthesis" },
  not_found: { status: 404, title: "The path or the object does not exist" },
  method_not_allowed: { status: 405, title: "The path does not support this method" },
  not_acceptable: { status: 406, title: "The server supports none of the media types in the header Accept" },
  name_taken: { status: 409, title: "The name is already in use" },
  request_timeout: { status: 408, title: "The request took too long to arrive" },
  body_too_large: { status: 413, title: "The body is too large" },
  audio_too_large: { status: 413, title: "The audio is too large for one JSON response" },
  unsupported_media_type: { status: 415, title: "The body must be application/json" },
  upgrade_required: { status: 426, title: "The path accepts only WebSocket connections" },
  headers_too_large: { status: 431, title: "The request's headers are too large" },
  rate_limited: { status: 429, title: "Too many requests with this key" },
  too_many_streams: { status: 429, title: "Too many concurrent streams with this key" },
  too_many_sockets: { status: 429, title: "Too many WebSockets with this key" },
  internal: { status: 500, title: "An unexpected error occurred in the server" },
  model_failed: { status: 502, title: "The model failed during synthesis" },
  saturated: { status: 503, title: "All streams are in use and the queue is full" },
  overloaded: { status: 503, title: "The memory for large requests is in use" },
  draining: { status: 503, title: "This server is shutting down" },
  model_starting: { status: 503, title: "The model is starting" },
  model_unreachable: { status: 503, title: "No replica of the model is reachable" },
  store_unavailable: { status: 503, title: "The database is not reachable" },
  deadline_exceeded: { status: 504, title: "The model produced no audio in time" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof registry;

export const errorCodes = Object.keys(registry) as ErrorCode[];

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(registry, value);
}

/**
 * An invalid field, with its location in the body (an RFC 6901 pointer) and a description of the allowed
 * values.
 */
export interface FieldError {
  readonly pointer: string;
  readonly detail: string;
}

export interface FailureOptions {
  readonly fields?: readonly FieldError[];
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/**
 * A failure with a code and a message for the client. The message never contains text to synthesize, keys or
 * tokens.
 */
export class Failure extends Error {
  readonly code: ErrorCode;
  readonly fields: readonly FieldError[];
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, detail: string, options: FailureOptions = {}) {
    super(detail, { cause: options.cause });
    this.name = "Failure";
    this.code = code;
    this.fields = options.fields ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get status(): number {
    return registry[this.code].status;
  }
}

/** A problem document (RFC 9457) with the media type `application/problem+json`. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly requestId: string;
  readonly errors?: readonly FieldError[];
}

export function toProblem(failure: Failure, requestId: string): ProblemDocument {
  const { status, title } = registry[failure.code];
  return {
    type: `https://svc-tts.dev/errors#${failure.code}`,
    title,
    status,
    detail: failure.message,
    code: failure.code,
    requestId,
    ...(failure.fields.length > 0 && { errors: failure.fields }),
  };
}
