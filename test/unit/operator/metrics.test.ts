import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { TtsDeploymentStatus } from "../../../crds/tts-deployment.ts";
import type { TtsModelCache, TtsModelPool } from "../../../operator/facts/observed.ts";
import { callMetrics, queueMetrics } from "../../../operator/serve/metrics.ts";
import { WorkQueue } from "../../../operator/serve/work-queue.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { ttsDeployment, ttsModelPool } from "../../support/operator/observed.ts";
import { operatorMetrics } from "../../support/server/metrics.ts";

async function metricValue(
  registry: Registry,
  name: string,
  labels: Record<string, string>,
): Promise<number | undefined> {
  const metric = await registry.getSingleMetric(name)?.get();
  return metric?.values.find(({ labels: at }) =>
    Object.entries(labels).every(([key, value]) => at[key] === value),
  )?.value;
}

test("a queue has the metrics of controller-runtime", async () => {
  const registry = new Registry();
  const clock = new FakeClock();
  let failures = 1;
  const queue = new WorkQueue({
    clock,
    workers: 1,
    observer: queueMetrics(registry, "ttsdeployment"),
    pass: async (key) => {
      if (key === "bad" && failures-- > 0) throw new Error("no");
      return key === "slow"
        ? { kind: "waiting", afterMs: 60_000, reason: "a pod starts" }
        : { kind: "settled" };
    },
  });
  for (const key of ["good", "bad", "slow"]) queue.add(key);
  const controller = "ttsdeployment";
  expect(await metricValue(registry, "workqueue_adds_total", { name: controller, controller })).toBe(3);
  queue.start();
  expect(await metricValue(registry, "workqueue_depth", { controller })).toBe(2);
  expect(await metricValue(registry, "controller_runtime_active_workers", { controller })).toBe(1);
  await clock.advance(1_000);
  const total = (result: string) =>
    metricValue(registry, "controller_runtime_reconcile_total", { controller, result });
  expect([await total("success"), await total("error"), await total("requeue_after")]).toEqual([2, 1, 1]);
  expect(await metricValue(registry, "controller_runtime_reconcile_errors_total", { controller })).toBe(1);
  expect(await metricValue(registry, "workqueue_retries_total", { controller })).toBe(1);
  expect(await metricValue(registry, "workqueue_depth", { controller })).toBe(0);
  await queue.stop();
});

test("requests are counted by status code, and by <error> if no response arrived", async () => {
  const registry = new Registry();
  const observe = callMetrics(registry, "10.96.0.1");
  observe({ method: "GET", kind: "Pod", status: 200, tookMs: 3 });
  observe({ method: "GET", kind: "Pod", status: 0, tookMs: 3 });
  const host = "10.96.0.1";
  expect(
    await metricValue(registry, "rest_client_requests_total", { code: "200", method: "GET", host }),
  ).toBe(1);
  expect(
    await metricValue(registry, "rest_client_requests_total", { code: "<error>", method: "GET", host }),
  ).toBe(1);
});

test("the not-ready reason is reported only for a TtsDeployment that is not ready", async () => {
  const statusWith = (status: string, reason: string) =>
    ({
      license: { state: "valid" },
      conditions: [{ type: "Ready", status, reason }],
      models: [],
    }) as unknown as TtsDeploymentStatus;
  let status = statusWith("False", "AdmissionDenied");
  const registry = operatorMetrics({
    leading: () => true,
    deployments: () => [{ ...ttsDeployment(), status }],
    failingWatches: () => [],
  });
  const shown = (reason: string) =>
    metricValue(registry, "svc_tts_operator_not_ready_reason", { namespace: "ns", name: "demo", reason });
  expect(await shown("AdmissionDenied")).toBe(1);
  status = statusWith("True", "Serving");
  expect(await shown("AdmissionDenied")).toBeUndefined();
  expect(await shown("Serving")).toBeUndefined();
});

test("only the leader reports the statuses of TtsDeployments, with the remaining grace period", async () => {
  const license = { state: "grace", expiresAt: "2026-01-01T00:00:00Z", graceUntil: "2026-01-04T00:00:00Z" };
  const status = {
    license,
    conditions: [{ type: "Ready", status: "True" }],
    models: [{ name: "mist", replicas: 3, readyReplicas: 2 }],
  } as unknown as TtsDeploymentStatus;
  let leading = true;
  const deployments = () => [{ ...ttsDeployment(), status }];
  const failingWatches = () => [{ kind: "Pod", namespace: "", count: 2 }];
  const registry = operatorMetrics(
    { leading: () => leading, deployments, failingWatches },
    Date.parse("2026-01-03T00:00:00Z"),
  );
  const demo = { namespace: "ns", name: "demo" };
  const value = (name: string, labels = {}) => metricValue(registry, name, { ...demo, ...labels });
  expect(await value("svc_tts_operator_license_expiry_timestamp_seconds")).toBe(1_767_225_600);
  expect(await value("svc_tts_operator_license_grace_remaining_seconds")).toBe(86_400);
  expect(await value("svc_tts_operator_condition", { condition: "Ready" })).toBe(1);
  expect(await value("svc_tts_operator_pool_replicas", { pool: "mist", state: "ready" })).toBe(2);
  expect(await metricValue(registry, "leader_election_master_status", { name: "tts-operator" })).toBe(1);
  expect(await metricValue(registry, "svc_tts_operator_failing_watches", { kind: "Pod" })).toBe(2);
  leading = false;
  expect(await value("svc_tts_operator_condition", { condition: "Ready" })).toBeUndefined();
  expect(await metricValue(registry, "leader_election_master_status", { name: "tts-operator" })).toBe(0);
});

test("only the leader reports the cold start of a pool, and the files of a model cache", async () => {
  const seconds = { schedulingSeconds: 1, imageSeconds: 2, modelSeconds: 30, warmUpSeconds: 4 };
  const coldStart = { pod: "demo-mist-1", createdAt: "2026-01-01T00:00:00Z", ...seconds, totalSeconds: 37 };
  const pool = { ...ttsModelPool(), status: { coldStart } } as unknown as TtsModelPool;
  const cache = (name: string, status: object) =>
    ({ metadata: { namespace: "ns", name }, status }) as unknown as TtsModelCache;
  let leading = true;
  const registry = operatorMetrics({
    leading: () => leading,
    pools: () => [pool, ttsModelPool({ pool: "other" })],
    modelCaches: () => [
      cache("voices", { fetched: { bytes: 70, files: 2 } }),
      cache("broken", { progress: { bytes: 5, files: 1 }, failure: { attempts: 3 } }),
    ],
  });
  const value = (name: string, labels: Record<string, string>) => metricValue(registry, name, labels);
  const demo = { namespace: "ns", name: "demo", pool: "mist" };
  const phases = ["scheduling", "image", "model", "warmUp"];
  const name = "svc_tts_operator_cold_start_seconds";
  const found = await Promise.all(phases.map((phase) => value(name, { ...demo, phase })));
  expect(found).toEqual([1, 2, 30, 4]);
  expect(await value(name, { pool: "other" })).toBeUndefined();
  expect(await value("svc_tts_operator_model_cache_bytes", { name: "voices" })).toBe(70);
  expect(await value("svc_tts_operator_model_cache_files", { name: "broken" })).toBe(1);
  expect(await value("svc_tts_operator_model_cache_failed_attempts", { name: "voices" })).toBe(0);
  expect(await value("svc_tts_operator_model_cache_failed_attempts", { name: "broken" })).toBe(3);
  leading = false;
  expect(await value(name, demo)).toBeUndefined();
  expect(await value("svc_tts_operator_model_cache_bytes", { name: "voices" })).toBeUndefined();
});
