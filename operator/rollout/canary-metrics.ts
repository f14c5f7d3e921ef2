import { poolMetrics } from "../../config/contract/pool-metrics.ts";
import type { CanarySpec } from "../../crds/tts-model-pool.ts";
import type { Diagnosis } from "../workload/diagnosis.ts";

/** The metrics of API pods for the streams of one pool and revision. */
export interface CanaryMetrics {
  /** Streams that completed or failed. Streams that clients aborted do not count. */
  readonly streams: number;
  readonly failed: number;
  readonly firstAudio: Histogram;
  readonly realTimeFactor: Histogram;
}

/** Cumulative counts by upper bound, as in a Prometheus histogram. */
export type Histogram = ReadonlyMap<number, number>;

/**
 * Sums the canary metrics of all API pods, from texts in the Prometheus format. Other metrics are ignored.
 */
export function readCanaryMetrics(
  texts: readonly string[],
  of: { pool: string; revision: string },
): CanaryMetrics {
  const counts = { streams: 0, failed: 0 };
  const firstAudio = new Map<number, number>();
  const realTimeFactor = new Map<number, number>();
  for (const { name, labels, value } of texts.flatMap(samples)) {
    if (labels.get("pool") !== of.pool || labels.get("revision") !== of.revision) continue;
    const outcome = labels.get("outcome");
    if (name === poolMetrics.spoken && (outcome === "ok" || outcome === "error")) counts.streams += value;
    if (name === poolMetrics.spoken && outcome === "error") counts.failed += value;
    if (name === `${poolMetrics.firstAudio}_bucket`) count(firstAudio, labels.get("le"), value);
    if (name === `${poolMetrics.realTimeFactor}_bucket`) count(realTimeFactor, labels.get("le"), value);
  }
  return { ...counts, firstAudio, realTimeFactor };
}

interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const sampleLine = /^([a-zA-Z_:][\w:]*)\{(.*)\} +(\S+)/;

function samples(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith("svc_tts_pool_")) return [];
    const [, name, pairs, number] = sampleLine.exec(line) ?? [];
    const value = Number(number);
    if (name === undefined || Number.isNaN(value)) return [];
    const found = [...(pairs ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    return [{ name, labels: new Map(found.map(([, key = "", text = ""]) => [key, text])), value }];
  });
}

function count(histogram: Map<number, number>, bound: string | undefined, value: number): void {
  const upTo = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
  histogram.set(upTo, (histogram.get(upTo) ?? 0) + value);
}

/**
 * Returns the difference between two readings. Returns `undefined` if a count decreased, because an API pod
 * was deleted.
 */
export function since(earlier: CanaryMetrics, later: CanaryMetrics): CanaryMetrics | undefined {
  const figures = {
    streams: later.streams - earlier.streams,
    failed: later.failed - earlier.failed,
    firstAudio: minus(later.firstAudio, earlier.firstAudio),
    realTimeFactor: minus(later.realTimeFactor, earlier.realTimeFactor),
  };
  const all = [figures.streams, figures.failed, ...figures.firstAudio.values()];
  return all.every((value) => value >= 0) ? figures : undefined;
}

function minus(later: Histogram, earlier: Histogram): Histogram {
  return new Map([...later].map(([bound, value]) => [bound, value - (earlier.get(bound) ?? 0)]));
}

/**
 * Returns a quantile like `histogram_quantile`: it interpolates linearly inside a bucket, and returns the
 * highest finite bound for values above it.
 */
export function bucketQuantile(histogram: Histogram, share: number): number | undefined {
  const buckets = [...histogram].sort(([a], [b]) => a - b);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total === 0) return undefined;
  const rank = share * total;
  let [lower, below] = [0, 0];
  for (const [bound, upTo] of buckets) {
    if (upTo >= rank && Number.isFinite(bound))
      return lower + ((bound - lower) * (rank - below)) / (upTo - below);
    if (!Number.isFinite(bound)) return lower;
    [lower, below] = [bound, upTo];
  }
  return lower;
}

type Analysis = CanarySpec["analysis"];

/** Returns the limit that the canary exceeds, if any. With too few streams it returns `undefined`. */
export function evaluateCanaryMetrics(analysis: Analysis, figures: CanaryMetrics): Diagnosis | undefined {
  const { minRequests, maxErrorPercent, maxFirstAudioMs, maxRealTimeFactorPercent } = analysis;
  const { streams, failed } = figures;
  if (streams === 0 || streams < minRequests) return undefined;
  const percent = (100 * failed) / streams;
  if (percent > maxErrorPercent) {
    const message = `${failed} of its ${streams} streams failed (${percent.toFixed(1)}%); the limit is ${maxErrorPercent}%`;
    return { reason: "CanaryErrors", message };
  }
  const firstAudioMs = 1000 * (bucketQuantile(figures.firstAudio, 0.95) ?? 0);
  if (maxFirstAudioMs !== undefined && firstAudioMs > maxFirstAudioMs) {
    const message = `its first audio takes ${firstAudioMs.toFixed(0)} ms at the 95th percentile; the limit is ${maxFirstAudioMs} ms`;
    return { reason: "CanaryFirstAudio", message };
  }
  const factor = 100 * (bucketQuantile(figures.realTimeFactor, 0.95) ?? 0);
  if (maxRealTimeFactorPercent !== undefined && factor > maxRealTimeFactorPercent) {
    const message = `its real-time factor is ${factor.toFixed(0)}% at the 95th percentile; the limit is ${maxRealTimeFactorPercent}%`;
    return { reason: "CanaryRealTimeFactor", message };
  }
  return undefined;
}
