import { readFileSync } from "node:fs";
import { collectDefaultMetrics, Gauge, type OpenMetricsContentType, Registry } from "prom-client";

/** It keeps exemplars, which only OpenMetrics can show; `expose` writes the older text format from it. */
export type TierRegistry = Registry<OpenMetricsContentType>;

/** Seconds, fit for speech: dense where a listener begins to notice, up to two seconds. */
export const firstAudioBuckets = [
  0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 5, 10,
  30,
];
/** Time over audio; below 1 is faster than speech. */
export const realTimeBuckets = [
  0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5,
];
/** Seconds in a queue; most wait none. */
export const waitBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** A registry with what every container tells of itself: its build, and Node's own metrics. */
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

/** A gauge whose values are looked up when it is read. */
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
 * Everything in the registry: OpenMetrics for who accepts it by name, as Prometheus does, else Prometheus text.
 * @param accept the header.
 */
export async function expose(registry: TierRegistry, accept: string | undefined): Promise<Exposition> {
  const text = await registry.metrics();
  return /\bapplication\/openmetrics-text\b/i.test(accept ?? "")
    ? { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text }
    : { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: toPrometheusText(text) };
}

/**
 * OpenMetrics as the Prometheus text format 0.0.4: a counter's name has its `_total` in the comments too, and there are neither
 * exemplars nor an end mark. (When prom-client writes the other format, it renames the counters of the registry for good.)
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
