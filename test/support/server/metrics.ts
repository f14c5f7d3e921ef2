import { Registry } from "prom-client";
import {
  callMetrics,
  leaderMetrics,
  modelStatusMetrics,
  queueMetrics,
  resourceMetrics,
  watchMetrics,
} from "../../../operator/serve/metrics.ts";
import type { Operator } from "../../../operator/serve/start.ts";
import { createMetrics, type Metrics } from "../../../server/api/observability/metrics.ts";
import { newCounts } from "../../../server/engine/runtime/generator-outcomes.ts";
import { Admission } from "../../../server/model/admission.ts";
import { EngineAdmission } from "../../../server/model/engine-admission.ts";
import { TierMetrics } from "../../../server/model/metrics.ts";
import { engineInstruments } from "../../../server/telemetry/open-telemetry.ts";

/** Returns the metrics of an API tier with a valid license and a reachable model. */
export function apiMetrics(): Metrics {
  return createMetrics({
    capacity: 8,
    license: { verdict: () => ({ state: "valid", message: "" }) },
    checksLicense: true,
    prober: { configured: () => ["mist"], isReachable: () => true },
    load: {
      read: () => ({ pools: { mist: { streams: 1, waiting: 0, replicas: { "http://10.0.0.7:8080": 1 } } } }),
    },
    now: () => 0,
  });
}

/** Returns the metrics of a model tier with one engine that was restarted twice. */
export function modelMetrics(): TierMetrics {
  const admission = new Admission({ maxStreams: 2, maxQueued: 2, deadlineMs: 1000 });
  const engine = {
    name: "flite",
    rate: 16_000,
    capacity: 1,
    restarts: 2,
    speak: () => {
      throw new Error("this engine cannot synthesize speech");
    },
    healthy: () => true,
    close: async () => undefined,
    counts: newCounts(),
  };
  return new TierMetrics(
    "arcana",
    admission,
    () => [engine],
    () => undefined,
    new EngineAdmission(1000),
  );
}

/** Resource attributes that Prometheus can promote to labels. */
const promoted = ["k8s_namespace_name", "k8s_pod_name", "svc_pool"];
const unitSuffixes: Readonly<Record<string, string>> = {
  ms: "_milliseconds",
  s: "_seconds",
  "%": "_percent",
};

/**
 * Returns the series, with their labels, that Prometheus creates from the OTLP metrics of arcana. The names
 * follow the translation rules of OpenTelemetry.
 */
export function sentSeries(): Map<string, readonly string[]> {
  return new Map(
    Object.values(engineInstruments).flatMap(({ name, kind, unit }): [string, readonly string[]][] => {
      const base = name.replaceAll(".", "_") + (unitSuffixes[unit] ?? "");
      if (kind === "counter") return [[`${base}_total`, promoted]];
      if (kind !== "histogram") return [[base, promoted]];
      const bucket: [string, readonly string[]] = [`${base}_bucket`, [...promoted, "le"]];
      return [bucket, [`${base}_sum`, promoted], [`${base}_count`, promoted]];
    }),
  );
}

/** Returns a registry with all metrics of the operator. */
export function operatorMetrics(
  operator?: Pick<Operator, "leading"> & Partial<Operator>,
  nowMs = 0,
): Registry {
  const none = () => [];
  const running = operator && {
    deployments: none,
    pools: none,
    modelCaches: none,
    failingWatches: none,
    ...operator,
  };
  const registry = new Registry();
  queueMetrics(registry, "tts-operator");
  callMetrics(registry, "10.96.0.1");
  leaderMetrics(registry, "tts-operator", () => running);
  watchMetrics(registry, () => running);
  modelStatusMetrics(registry, () => running);
  resourceMetrics(
    registry,
    () => running,
    () => nowMs,
  );
  return registry;
}

/** Returns the samples of an exposition without their values. */
export function seriesOf(exposition: string): Set<string> {
  const lines = exposition.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Set(lines.map((line) => line.replace(/ \S+$/, "")));
}
