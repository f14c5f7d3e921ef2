import type { FastifyReply } from "fastify";
import { Counter, Histogram } from "prom-client";
import type { ErrorCode } from "../contract/errors.ts";
import type { TierRegistry } from "./registry.ts";

/**
 * The value of the labels `endpoint` and `method` for unknown paths and methods, so that clients cannot add
 * series.
 */
const other = "other";
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/**
 * The status in metrics and logs of a request whose client disconnected before the response. The server never
 * sends this status. nginx uses the same number.
 */

const clientClosedStatus = 499;

/** Returns the result of a finished response. The response is complete if its last byte was sent. */
export function endOf({ raw, statusCode }: FastifyReply): { isWhole: boolean; status: number } {
  const isWhole = raw.writableFinished;
  return { isWhole, status: isWhole || raw.headersSent ? statusCode : clientClosedStatus };
}

/**
 * Returns whether a request is logged only at the level debug. Probes are GET requests that arrive every few
 * seconds, and a failed probe has the status 503.
 */
export function isProbe(method: string, status: number): boolean {
  return method === "GET" && (status < 400 || status === 503);
}

export interface Answered {
  /** The pattern of the route. The value is undefined if no route matched, or if the bytes were not HTTP. */
  readonly endpoint: string | undefined;
  readonly method: string | undefined;
  readonly status: number;
  /** The error code. The failure may have occurred after the status was sent. */
  readonly code: ErrorCode | undefined;
  /** The duration of the response. The value is undefined if the duration was not measured. */
  readonly seconds: number | undefined;
}

/** The two counters of specification 4.6, and the duration of responses. */
export class HttpMetrics {
  readonly #requests: Counter;
  readonly #errors: Counter;
  readonly #duration: Histogram;

  constructor(registry: TierRegistry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: "http_requests_total",
      help: "HTTP requests by endpoint, status and method",
      labelNames: ["endpoint", "http_status", "method"],
      registers,
    });
    this.#errors = new Counter({
      name: "http_errors_total",
      help: "HTTP requests that failed, including failures after the status was sent; error_message is an error code",
      labelNames: ["endpoint", "error_message", "http_status", "method"],
      registers,
    });
    this.#duration = new Histogram({
      name: "http_request_duration_seconds",
      help: "Time from the arrival of an HTTP request to the last byte of its response",
      labelNames: ["endpoint", "method"],
      buckets: durationBuckets,
      registers,
    });
  }

  answered({ endpoint = other, method = other, status, code, seconds }: Answered): void {
    const knownMethod = methods.has(method) ? method : other;
    const labels = { endpoint, http_status: String(status), method: knownMethod };
    this.#requests.inc(labels);
    if (code) this.#errors.inc({ ...labels, error_message: code });
    if (seconds !== undefined) this.#duration.observe({ endpoint, method: knownMethod }, seconds);
  }
}
