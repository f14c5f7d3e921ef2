import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ErrorCode } from "../errors.ts";
import type { Admission } from "./admission.ts";

/** Everything that a label `endpoint` or `method` may say; a caller cannot add to it. */
const otherEndpoint = "other";
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export interface Answered {
  /** The route's pattern; undefined where no route was found. */
  readonly endpoint: string | undefined;
  readonly method: string;
  readonly status: number;
}

/** What `/metrics` of a model tier shows; the first two are the specification's (4.6). */
export class TierMetrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: "http_requests_total",
    help: "HTTP requests answered",
    labelNames: ["endpoint", "http_status", "method"],
    registers: [this.#registry],
  });
  readonly #errors = new Counter({
    name: "http_errors_total",
    help: "HTTP requests that failed; error_message is a code of the error registry",
    labelNames: ["endpoint", "error_message", "http_status", "method"],
    registers: [this.#registry],
  });
  readonly #firstAudio = new Histogram({
    name: "svc_time_to_first_audio_seconds",
    help: "From the arrival of a request to its first audio, waiting included",
    labelNames: ["model"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [this.#registry],
  });
  readonly #wait = new Histogram({
    name: "svc_queue_wait_seconds",
    help: "How long admitted requests waited for a stream",
    buckets: [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10],
    registers: [this.#registry],
  });

  constructor(admission: Admission) {
    this.#gauge("svc_streams_in_flight", "Streams that speak now", () => admission.speaking);
    this.#gauge("svc_stream_capacity", "Streams that may speak at once", () => admission.limits.maxStreams);
    this.#gauge("svc_queue_depth", "Requests that wait for a stream", () => admission.queued);
  }

  countRequest({ endpoint, method, status }: Answered): void {
    this.#requests.inc(labels(endpoint, method, status));
  }

  countError({ endpoint, method, status }: Answered, code: ErrorCode): void {
    this.#errors.inc({ ...labels(endpoint, method, status), error_message: code });
  }

  firstAudio(model: string, seconds: number): void {
    this.#firstAudio.observe({ model }, seconds);
  }

  waited(seconds: number): void {
    this.#wait.observe(seconds);
  }

  async text(): Promise<{ readonly contentType: string; readonly body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }

  #gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(value());
      },
    });
  }
}

function labels(endpoint: string | undefined, method: string, status: number) {
  return {
    endpoint: endpoint ?? otherEndpoint,
    method: methods.has(method) ? method : "other",
    http_status: String(status),
  };
}
