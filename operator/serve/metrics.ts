import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { CallObserver } from "../cluster/client.ts";
import type { TtsModelCache } from "../facts/observed.ts";
import type { Operator } from "./start.ts";
import type { QueueObserver } from "./work-queue.ts";

/** The buckets of controller-runtime, so that dashboards and alerts for controller-runtime can be used. */
const reconcileSeconds = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60,
];
const queueSeconds = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000];

/** The names of controller-runtime for the results of reconciles. */
const results = {
  settled: "success",
  stalled: "success",
  waiting: "requeue_after",
  failed: "error",
} as const;

/**
 * Creates the metrics of the work queue and of reconciles, with the names of controller-runtime and client-go
 * (`workqueue_*`, `controller_runtime_*`).
 */
export function queueMetrics(registry: Registry, controller: string): QueueObserver {
  const registers = [registry];
  const labelNames = ["controller"];
  /**
   * Dashboards for client-go select by the label `name`, and dashboards for controller-runtime by the label
   * `controller`.
   */
  const named = ["name"];
  const queue = { name: controller, controller };
  const counter = (name: string, help: string, more: readonly string[] = []) =>
    new Counter({ name, help, registers, labelNames: [...labelNames, ...more] });
  const gauge = (name: string, help: string, more: readonly string[] = []) =>
    new Gauge({ name, help, registers, labelNames: [...labelNames, ...more] });
  const histogram = (name: string, help: string, buckets: number[], more: readonly string[] = []) =>
    new Histogram({ name, help, registers, buckets, labelNames: [...labelNames, ...more] });
  const adds = counter(
    "workqueue_adds_total",
    "Keys added to the work queue, including keys that were already queued",
    named,
  );
  const retries = counter("workqueue_retries_total", "Reconciles retried after a failure", named);
  const depth = gauge("workqueue_depth", "Keys in the work queue", named);
  const waited = histogram(
    "workqueue_queue_duration_seconds",
    "Time that keys waited in the work queue",
    queueSeconds,
    named,
  );
  const worked = histogram("workqueue_work_duration_seconds", "Duration of reconciles", queueSeconds, named);
  const reconciles = counter("controller_runtime_reconcile_total", "Reconciles by result", ["result"]);
  const errors = counter("controller_runtime_reconcile_errors_total", "Reconciles that failed");
  const active = gauge("controller_runtime_active_workers", "Reconciles in progress");
  const took = histogram(
    "controller_runtime_reconcile_time_seconds",
    "Duration of reconciles",
    reconcileSeconds,
  );
  for (const result of new Set(Object.values(results))) reconciles.inc({ controller, result }, 0);
  errors.inc({ controller }, 0);
  return {
    added: () => adds.inc(queue),
    depth(waiting, running) {
      depth.set(queue, waiting);
      active.set({ controller }, running);
    },
    started: (_key, waitedMs) => waited.observe(queue, waitedMs / 1000),
    finished(_key, result, tookMs) {
      reconciles.inc({ controller, result: results[result] });
      worked.observe(queue, tookMs / 1000);
      took.observe({ controller }, tookMs / 1000);
    },
    failed() {
      errors.inc({ controller });
      retries.inc(queue);
    },
  };
}

/**
 * Creates the metric `rest_client_requests_total` of client-go. `code` is `<error>` if no response arrived.
 */
export function callMetrics(registry: Registry, host: string): CallObserver {
  const requests = new Counter({
    name: "rest_client_requests_total",
    help: "Requests to the API server by status, method and host",
    registers: [registry],
    labelNames: ["code", "method", "host"],
  });
  return ({ method, status }) => {
    requests.inc({ code: status === 0 ? "<error>" : String(status), method, host });
  };
}

/**
 * Creates the metric of failing watches. Every process reports it, because a process that is not the leader
 * also watches, and may become the leader.
 */
export function watchMetrics(
  registry: Registry,
  operator: () => Pick<Operator, "failingWatches"> | undefined,
): void {
  new Gauge({
    name: "svc_tts_operator_failing_watches",
    help: "Watches that failed in their last attempt, by kind and namespace; absent while no watch fails",
    registers: [registry],
    labelNames: ["kind", "namespace"],
    collect() {
      this.reset();
      for (const { count, ...place } of operator()?.failingWatches() ?? []) this.set(place, count);
    },
  });
}

type RunningOperator = Pick<Operator, "leading" | "deployments" | "pools" | "modelCaches">;

/** Creates the metric `leader_election_master_status` of client-go. */
export function leaderMetrics(
  registry: Registry,
  lease: string,
  operator: () => RunningOperator | undefined,
): void {
  new Gauge({
    name: "leader_election_master_status",
    help: "1 while this process is the leader, otherwise 0",
    registers: [registry],
    labelNames: ["name"],
    collect() {
      this.set({ name: lease }, operator()?.leading() === true ? 1 : 0);
    },
  });
}

const of = ["namespace", "name"] as const;
const statuses = { True: 1, False: 0, Unknown: -1 } as const;

interface ReportedStatus {
  readonly labels: { readonly namespace: string; readonly name: string };
  readonly status: TtsDeploymentStatus;
}

function statusesOf(running: RunningOperator | undefined): ReportedStatus[] {
  const found: ReportedStatus[] = [];
  if (running?.leading() !== true) return found;
  for (const { metadata, status } of running.deployments()) {
    if (status !== undefined)
      found.push({ labels: { namespace: metadata.namespace, name: metadata.name }, status });
  }
  return found;
}

/** Caches a value for all gauges of one scrape. The value is dropped in the next microtask. */
function oncePerScrape<T>(read: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => {
    if (known === undefined) {
      known = { value: read() };
      queueMicrotask(() => {
        known = undefined;
      });
    }
    return known.value;
  };
}

/**
 * Creates the metrics of the TtsDeployments' statuses. Only the leader reports them, so that sums count each
 * TtsDeployment once.
 */
export function resourceMetrics(
  registry: Registry,
  operator: () => RunningOperator | undefined,
  nowMs: () => number,
): void {
  const all = oncePerScrape(() => statusesOf(operator()));
  const each = (report: (labels: ReportedStatus["labels"], status: TtsDeploymentStatus) => void) => {
    for (const { labels, status } of all()) report(labels, status);
  };
  const gauge = (
    name: string,
    help: string,
    more: readonly string[],
    report: (gauge: Gauge, ...of: Parameters<Parameters<typeof each>[0]>) => void,
  ) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      labelNames: [...of, ...more],
      collect() {
        this.reset();
        each((labels, status) => report(this, labels, status));
      },
    });
  gauge(
    "svc_tts_operator_condition",
    "Status of each condition of each TtsDeployment: 1 True, 0 False, -1 Unknown",
    ["condition"],
    (metric, labels, { conditions }) => {
      for (const { type, status } of conditions) metric.set({ ...labels, condition: type }, statuses[status]);
    },
  );
  gauge(
    "svc_tts_operator_not_ready_reason",
    "1 with the reason of Ready for each TtsDeployment that is not ready; absent for ready TtsDeployments",
    ["reason"],
    (metric, labels, { conditions }) => {
      const ready = conditions.find(({ type }) => type === "Ready");
      if (ready?.status === "False") metric.set({ ...labels, reason: ready.reason }, 1);
    },
  );
  gauge(
    "svc_tts_operator_license_expiry_timestamp_seconds",
    "Expiry of the license in seconds since the epoch; absent without a readable license",
    [],
    (metric, labels, { license }) => {
      if (license.expiresAt !== undefined) metric.set(labels, Date.parse(license.expiresAt) / 1000);
    },
  );
  gauge(
    "svc_tts_operator_license_grace_remaining_seconds",
    "Remaining grace period in seconds; absent outside the grace period",
    [],
    (metric, labels, { license }) => {
      if (license.graceUntil === undefined) return;
      metric.set(labels, Math.max(0, (Date.parse(license.graceUntil) - nowMs()) / 1000));
    },
  );
  gauge(
    "svc_tts_operator_pool_replicas",
    "Pods of a pool by state: all or ready",
    ["pool", "state"],
    (metric, labels, { models }) => {
      for (const { name: pool, replicas, readyReplicas } of models) {
        metric.set({ ...labels, pool, state: "all" }, replicas);
        metric.set({ ...labels, pool, state: "ready" }, readyReplicas);
      }
    },
  );
}

const phasesOfColdStart = {
  scheduling: "schedulingSeconds",
  image: "imageSeconds",
  model: "modelSeconds",
  warmUp: "warmUpSeconds",
} as const;

/** Creates the metrics of pools and model caches. Only the leader reports them. */
export function modelStatusMetrics(registry: Registry, operator: () => RunningOperator | undefined): void {
  const leader = () => (operator()?.leading() === true ? operator() : undefined);
  new Gauge({
    name: "svc_tts_operator_cold_start_seconds",
    help: "Duration of the last cold start of a pool by phase; absent until a pod of the pool was ready",
    registers: [registry],
    labelNames: [...of, "pool", "phase"],
    collect() {
      this.reset();
      for (const { metadata, spec, status } of leader()?.pools() ?? []) {
        const { coldStart } = status ?? {};
        if (coldStart === undefined) continue;
        const labels = { namespace: metadata.namespace, name: spec.deployment, pool: spec.pool };
        for (const [phase, field] of Object.entries(phasesOfColdStart))
          this.set({ ...labels, phase }, coldStart[field]);
      }
    },
  });
  const ofCache = (
    name: string,
    help: string,
    read: (status: NonNullable<TtsModelCache["status"]>) => number | undefined,
  ) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      labelNames: [...of],
      collect() {
        this.reset();
        for (const { metadata, status } of leader()?.modelCaches() ?? []) {
          const value = status && read(status);
          if (value !== undefined) this.set({ namespace: metadata.namespace, name: metadata.name }, value);
        }
      },
    });
  ofCache(
    "svc_tts_operator_model_cache_bytes",
    "Size of the fetched files of each TtsModelCache; absent until the first progress",
    ({ progress, fetched }) => (progress ?? fetched)?.bytes,
  );
  ofCache(
    "svc_tts_operator_model_cache_files",
    "Number of complete files of each TtsModelCache; absent until the first progress",
    ({ progress, fetched }) => (progress ?? fetched)?.files,
  );
  ofCache(
    "svc_tts_operator_model_cache_failed_attempts",
    "Failed attempts to fetch the current specification of each TtsModelCache; 0 after a success",
    ({ failure }) => failure?.attempts ?? 0,
  );
}
