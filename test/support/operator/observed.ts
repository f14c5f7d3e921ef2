import { Compile } from "typebox/compile";
import { Value } from "typebox/value";
import type { LicenseReading } from "../../../config/contract/license.ts";
import { TtsDeploymentSpecSchema } from "../../../crds/tts-deployment.ts";
import { TtsModelPoolSpecSchema } from "../../../crds/tts-model-pool.ts";
import { modelDeployment } from "../../../operator/desired/pods/deployment.ts";
import type {
  Deployment,
  LicenseAllowance,
  LicenseDecision,
  ObservedDeployment,
  Pod,
  TtsDeployment,
  TtsModelPool,
} from "../../../operator/facts/observed.ts";
import type { ServerImage } from "../../../operator/facts/settings.ts";
import { planRollout } from "../../../operator/rollout/plan.ts";

/** Creates the observed facts of a reconcile for unit tests. Defaults are set as by the API server. */

type Json = { [name: string]: unknown };
export const now = Date.parse("2026-01-01T00:00:00Z");

const meta = (name: string, uid = `uid-of-${name}`) => ({ name, namespace: "ns", uid, generation: 1 });

export function ttsDeployment(
  spec: Json = {},
  models: Json[] = [{ name: "mist", kind: "mist" }],
): TtsDeployment {
  const partial = { license: { secretRef: { name: "license" } }, models, ...spec };
  const complete = Value.Default(TtsDeploymentSpecSchema, partial);
  if (!Compile(TtsDeploymentSpecSchema).Check(complete))
    throw new Error(`invalid spec: ${JSON.stringify(partial)}`);
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsDeployment",
    metadata: meta("demo"),
    spec: complete,
  };
}

export function ttsModelPool(spec: Json = {}): TtsModelPool {
  const partial = { deployment: "demo", pool: "mist", kind: "mist", ...spec };
  const complete = Value.Default(TtsModelPoolSpecSchema, partial);
  if (!Compile(TtsModelPoolSpecSchema).Check(complete))
    throw new Error(`invalid spec: ${JSON.stringify(partial)}`);
  const metadata = meta(`demo-${complete.pool}`);
  return { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsModelPool", metadata, spec: complete };
}

/** Returns a Deployment with all pods running. `status` replaces fields of its status. */
export function running(replicas: number, status: Json = {}): Deployment {
  const all = { observedGeneration: 1, replicas, updatedReplicas: replicas, availableReplicas: replicas };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: meta("some"),
    spec: { replicas, selector: {}, template: {}, progressDeadlineSeconds: 900 },
    status: { ...all, readyReplicas: replicas, ...status },
  };
}

export function pod(status: Pod["status"] & object, name = "demo-mist-1"): Pod {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "ns" }, status };
}

/** The defaults of the command line of the operator, without trusted license keys. */
export const serverSettings = {
  server: { image: "server:1", pullPolicy: undefined },
  licenseKeys: { keys: [] },
};

export const granted: LicenseAllowance = { held: false, replicas: 1 };

/**
 * Returns the decision for a valid license that allows one replica of the API tier and of each of these
 * pools.
 */
export function granting(...pools: string[]): LicenseDecision {
  return {
    verdict: { state: "valid", message: "Licensed." },
    valid: true,
    reason: "Valid",
    message: "Licensed.",
    failedAt: undefined,
    api: granted,
    pools: new Map(pools.map((name) => [name, granted])),
    limits: new Map(pools.map((name) => [name, 8])),
    canaries: new Map(),
    changesAt: undefined,
  };
}

const noLicense: LicenseReading = { state: "missing", message: "No license was found." };

export function observed(
  deployment: TtsDeployment,
  more: Partial<ObservedDeployment> = {},
): ObservedDeployment {
  return {
    now,
    deployment,
    license: noLicense,
    keysSecretExists: undefined,
    telemetry: { missingSecrets: [], monitorsMissing: false },
    api: { deployment: undefined, pods: [] },
    apiReplicas: deployment.spec.api.replicas,
    pools: [],
    ...more,
  };
}

/** Returns the Deployment that the operator would apply for a pool without canary and without metrics. */
export function plannedDeployment(
  pool: TtsModelPool,
  live: Deployment | undefined,
  grant: LicenseAllowance,
  server: ServerImage,
) {
  const facts = { observed: { pool, workload: { deployment: live, pods: [] } }, grant, now };
  return modelDeployment(
    pool,
    planRollout(
      { ...facts, canary: undefined, routed: false, figures: undefined, licensedCanary: 0 },
      server,
    ),
  );
}
