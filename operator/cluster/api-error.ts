/** One detail of a refusal: which field, and the rule it broke. */
export type ApiCause = { reason?: string; field?: string; message?: string };

/**
 * The error of a request to the API server. `status` is the HTTP status, or 0 when no answer arrived (`reason` is then
 * `Unreachable`, `Timeout`, `Aborted` or `TooLarge`). `reason` is Kubernetes' own word otherwise (`NotFound`, `Conflict`, `Invalid` …).
 */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly reason: string;
  readonly causes: ApiCause[];
  /** How long the server asked to wait, in milliseconds. */
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

/** Says what was asked, and of what: never a body. `secret` keeps even the server's sentence out, which may quote a value. */
export type ApiErrorContext = { method: string; path: string; secret: boolean };

/** From a `Status` object (Kubernetes API conventions, "Response Status Kind"), or from whatever a proxy answered. */
export function apiErrorOf(
  asked: ApiErrorContext,
  status: number,
  body: string,
  retryAfter: string | undefined,
): ApiError {
  const said = parseStatus(body);
  const reason = said.reason ?? `Http${status}`;
  const causes = asked.secret
    ? said.causes.map(({ reason, field }) => dropUndefined({ reason, field }))
    : said.causes;
  const sentence = asked.secret
    ? `${reason} (details of a Secret are not repeated)`
    : (said.message ?? "no further details");
  return new ApiError({
    status,
    reason,
    causes,
    message: `${asked.method} ${asked.path}: ${status} ${reason}: ${sentence}`,
    retryAfterMs: parseRetryAfterMs(retryAfter) ?? said.retryAfterMs,
  });
}

type SaidStatus = { reason?: string; message?: string; causes: ApiCause[]; retryAfterMs?: number };

function parseStatus(body: string): SaidStatus {
  const status = parseObject(body);
  if (status === undefined || status.kind !== "Status") return { causes: [] };
  const details = isObject(status.details) ? status.details : {};
  const causes = Array.isArray(details.causes) ? details.causes.filter(isObject).map(causeOf) : [];
  const said: SaidStatus = { causes };
  if (typeof status.reason === "string" && status.reason !== "") said.reason = status.reason;
  if (typeof status.message === "string") said.message = status.message.slice(0, 4_000);
  if (typeof details.retryAfterSeconds === "number") said.retryAfterMs = details.retryAfterSeconds * 1000;
  return said;
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
    // A proxy's HTML page or an empty body: the status alone has to do.
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Seconds only: the API server sends no dates (RFC 9110, 10.2.3). */
function parseRetryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}
