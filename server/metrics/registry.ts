import { readFileSync } from "node:fs";
import { collectDefaultMetrics, Gauge, type OpenMetricsContentType, Registry } from "prom-client";

/**
 * The registry keeps exemplars, which only OpenMetrics can show. `expose` converts to the older text format.
 */
export type TierRegistry = Registry<OpenMetricsContentType>;

/**
 * The buckets in seconds. The buckets are dense below two seconds, because users notice delays in this range.
 */
export const firstAudioBuckets = [
  0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 5, 10,
  30,
];
/** The buckets of the real-time factor. A factor below 1 is faster than real time. */
export const realTimeBuckets = [
  0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5,
];
/** The buckets of the time in a queue, in seconds. Most requests do not wait. */
export const waitBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** Creates a registry with the metrics of every container: its build, and Node's own metrics. */
export function createRegistry(tier: string): TierRegistry {
  const registry: TierRegistry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "svc_tts_build_info",
    help: "Always 1; the labels name the running version",
    labelNames: ["version", "node_version", "tier"],
    registers: [registry],
  }).set({ version, node_version: process.versions.node, tier }, 1);
  return registry;
}

/** Creates a gauge with a value that is computed when the metrics are requested. */
export function watchedGauge(registry: TierRegistry, name: string, help: string, value: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(value());
    },
  });
}

export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/**
 * Returns the content of the registry: as OpenMetrics if `Accept` contains the media type of OpenMetrics, as
 * in requests of Prometheus, and otherwise in the Prometheus text format.
 * @param accept the value of the header `Accept`.
 */
export async function expose(registry: TierRegistry, accept: string | undefined): Promise<Exposition> {
  const text = await registry.metrics();
  return /\bapplication\/openmetrics-text\b/i.test(accept ?? "")
    ? { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text }
    : { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: toPrometheusText(text) };
}

/**
 * Converts OpenMetrics to the Prometheus text format 0.0.4: the comments name counters with the suffix
 * `_total`, and the exemplars and the end mark are removed. This function does not use the conversion of
 * prom-client, because that conversion renames the counters of the registry permanently.
 */
export function toPrometheusText(openMetrics: string): string {
  const counters = new Set(
    [...openMetrics.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name = ""]) => name),
  );
  return openMetrics
    .replace(/^# (HELP|TYPE) (\S+)/gm, (comment, _kind, name: string) =>
      counters.has(name) ? `${comment}_total` : comment,
    )
    .replace(/^([^#\n].*?\}? \S+) # \{.*$/gm, "$1")
    .replace(/^# EOF\n/m, "");
}
