import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { licenseStates } from "../../config/contract/license.ts";
import type { ModelId } from "../../config/contract/models.ts";
import type { ErrorCode } from "../errors.ts";

/** What one API process counts. Every label has a bounded set of values. */
export interface Metrics {
  requestDone(facts: { endpoint: string; method: string; status: number; code: ErrorCode | undefined }): void;
  firstAudio(facts: { model: ModelId; variant: string; seconds: number }): void;
  audioSent(facts: { model: ModelId; seconds: number }): void;
  streamStarted(model: ModelId): void;
  streamEnded(model: ModelId): void;
  licenseIs(state: string): void;
  exposition(): Promise<{ readonly contentType: string; readonly text: string }>;
}

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const secondsToFirstAudio = [0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: "http_requests_total",
    help: "Requests answered",
    labelNames: ["endpoint", "http_status", "method"],
    registers,
  });
  const errors = new Counter({
    name: "http_errors_total",
    help: "Requests that failed, by the code of the failure",
    labelNames: ["endpoint", "error_message", "http_status", "method"],
    registers,
  });
  const firstAudio = new Histogram({
    name: "svc_tts_first_audio_seconds",
    help: "From the arrival of a request to its first audio",
    labelNames: ["model", "variant"],
    buckets: secondsToFirstAudio,
    registers,
  });
  const audio = new Counter({
    name: "svc_tts_audio_seconds_total",
    help: "Speech sent, in seconds of sound",
    labelNames: ["model"],
    registers,
  });
  const streams = new Gauge({
    name: "svc_tts_streams",
    help: "Requests being spoken now",
    labelNames: ["model"],
    registers,
  });
  const license = new Gauge({
    name: "svc_tts_license_state",
    help: "1 for the state that the license is in",
    labelNames: ["state"],
    registers,
  });

  return {
    requestDone({ endpoint, method, status, code }) {
      const labels = {
        endpoint,
        http_status: String(status),
        method: methods.has(method) ? method : "other",
      };
      requests.inc(labels);
      if (code) errors.inc({ ...labels, error_message: code });
    },
    firstAudio: ({ model, variant, seconds }) => firstAudio.observe({ model, variant }, seconds),
    audioSent: ({ model, seconds }) => audio.inc({ model }, seconds),
    streamStarted: (model) => streams.inc({ model }),
    streamEnded: (model) => streams.dec({ model }),
    licenseIs: (now) => {
      for (const state of licenseStates) license.set({ state }, state === now ? 1 : 0);
    },
    exposition: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
