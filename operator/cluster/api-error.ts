/** One cause of a rejection: the field, and the rule that it violates. */
export type ApiCause = { reason?: string; field?: string; message?: string };

/**
 * The error of a request to the API server. `status` is the HTTP status, or 0 if no response arrived (`reason` is then
 * `Unreachable`, `Timeout`, `Aborted` or `TooLarge`). Otherwise `reason` comes from Kubernetes (`NotFound`, `Conflict`,
 * `Invalid` …).
 */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly reason: string;
  readonly causes: ApiCause[];
  /** The `Retry-After` of the server, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    about: {
      status: number;
      reason: string;
      message: string;
      causes?: ApiCause[];
      retryAfterMs?: number | undefined;
    },
    options?: ErrorOptions,
  ) {
    super(about.message, options);
    this.status = about.status;
    this.reason = about.reason;
    this.causes = about.causes ?? [];
    this.retryAfterMs = about.retryAfterMs;
  }
}

/**
 * The request that an error message names. With `secret`, the error omits the server's message, because that
 * message may quote a value.
 */
export type ApiErrorContext = { method: string; path: string; secret: boolean };

/**
 * Creates an error from a `Status` object (Kubernetes API conventions, "Response Status Kind"), or from the
 * response of a proxy.
 */
export function apiErrorOf(
  request: ApiErrorContext,
  status: number,
  body: string,
  retryAfter: string | undefined,
): ApiError {
  const parsed = parseStatus(body);
  const reason = parsed.reason ?? `Http${status}`;
  const causes = request.secret
    ? parsed.causes.map(({ reason, field }) => dropUndefined({ reason, field }))
    : parsed.causes;
  const sentence = request.secret
    ? `${reason} (details of a Secret are not repeated)`
    : (parsed.message ?? "no further details");
  return new ApiError({
    status,
    reason,
    causes,
    message: `${request.method} ${request.path}: ${status} ${reason}: ${sentence}`,
    retryAfterMs: parseRetryAfterMs(retryAfter) ?? parsed.retryAfterMs,
  });
}

type ParsedStatus = { reason?: string; message?: string; causes: ApiCause[]; retryAfterMs?: number };

function parseStatus(body: string): ParsedStatus {
  const status = parseObject(body);
  if (status === undefined || status.kind !== "Status") return { causes: [] };
  const details = isObject(status.details) ? status.details : {};
  const causes = Array.isArray(details.causes) ? details.causes.filter(isObject).map(causeOf) : [];
  const parsed: ParsedStatus = { causes };
  if (typeof status.reason === "string" && status.reason !== "") parsed.reason = status.reason;
  if (typeof status.message === "string") parsed.message = status.message.slice(0, 4_000);
  if (typeof details.retryAfterSeconds === "number") parsed.retryAfterMs = details.retryAfterSeconds * 1000;
  return parsed;
}

function causeOf(cause: Record<string, unknown>): ApiCause {
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  return dropUndefined({
    reason: text(cause.reason),
    field: text(cause.field),
    message: text(cause.message),
  });
}

function dropUndefined(cause: { [K in keyof ApiCause]: string | undefined }): ApiCause {
  return Object.fromEntries(Object.entries(cause).filter(([, value]) => value !== undefined));
}

function parseObject(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : undefined;
  } catch {
    // The body is empty, or it is the HTML page of a proxy, so only the status is known.
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses the header `Retry-After` in seconds. The API server never sends it as a date (RFC 9110, 10.2.3). */
function parseRetryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}
