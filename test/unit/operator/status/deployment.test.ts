import { describe, expect, it } from "vitest";
import { apiSettings } from "../../../../operator/desired/pods/deployment.ts";
import type { LicenseDecision, ObservedPool, ReconcileProblem } from "../../../../operator/facts/observed.ts";
import { transitions } from "../../../../operator/status/conditions.ts";
import { deploymentStatus, suspendedStatus } from "../../../../operator/status/deployment.ts";
import { poolStatus } from "../../../../operator/status/pool.ts";
import {
  granted,
  granting,
  now,
  observed,
  running,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const good = granting("mist");
const digest = `sha256:0123456789ab${"0".repeat(52)}`;
const expired: LicenseDecision = {
  ...good,
  verdict: { state: "expired", message: "It expired." },
  valid: false,
  reason: "Expired",
  message: "It expired.",
};
const unlicensed: LicenseDecision = {
  ...good,
  verdict: { state: "not_required", message: "No license is required." },
  reason: "NotRequired",
};
const grace: LicenseDecision = {
  ...expired,
  verdict: { state: "grace", message: "It expired.", graceUntil: now + 1 },
};

function pool(replicas = 1, problem?: ReconcileProblem): ObservedPool {
  const bare = { pool: ttsModelPool(), workload: { deployment: running(replicas), pods: [] } };
  bare.pool.status = poolStatus(bare, { now, grant: granted, problem });
  return bare;
}

const canary = () => pool(1, { reason: "Canary", message: "The canary receives 5%.", stalled: false });

const api = { deployment: running(1), pods: [] };
const serving = { api, pools: [pool()] };
const stalled: ReconcileProblem = { reason: "NameTaken", message: "Service a/b is taken.", stalled: true };

function conditionsOf(more: object, judgement = good, problem?: ReconcileProblem) {
  const { conditions } = deploymentStatus(observed(ttsDeployment(), more), judgement, problem);
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

describe("the status of a TtsDeployment", () => {
  it.each<[string, Record<string, string>, Record<string, string>]>([
    [
      "is ready",
      conditionsOf(serving),
      {
        Ready: "True Serving",
        Reconciling: "False Settled",
        Stalled: "False Settled",
        LicenseValid: "True Valid",
        ModelsReady: "True Serving",
        ApiReady: "True Serving",
        RolloutHealthy: "True Complete",
      },
    ],
    [
      "needs no license",
      conditionsOf(serving, unlicensed),
      { Ready: "True Serving", Stalled: "False Settled", LicenseValid: "True NotRequired" },
    ],
    [
      "is in its grace period",
      conditionsOf(serving, grace),
      { Ready: "True Serving", LicenseValid: "False Expired" },
    ],
    [
      "is past its grace period",
      conditionsOf(serving, expired),
      { Ready: "False LicenseExpired", Stalled: "True LicenseExpired", Reconciling: "False Stalled" },
    ],
    [
      "has no pool yet",
      conditionsOf({ api, pools: [] }),
      {
        Ready: "False Creating",
        Reconciling: "True Creating",
        Stalled: "False Progressing",
        ModelsReady: "False Creating",
      },
    ],
    [
      "has a stalled pool",
      conditionsOf({ api, pools: [pool(1, stalled)] }),
      {
        Ready: "False NameTaken",
        Stalled: "True NameTaken",
        RolloutHealthy: "False NameTaken",
        ApiReady: "True Serving",
      },
    ],
    [
      "has a canary",
      conditionsOf({ api, pools: [canary()] }),
      { Ready: "False Canary", Stalled: "False Progressing", RolloutHealthy: "True Canary" },
    ],
    [
      "has a canary, and API pods that are not ready",
      conditionsOf({
        api: { deployment: running(1, { availableReplicas: 0 }), pods: [] },
        pools: [canary()],
      }),
      {
        Ready: "False PodsNotReady",
        ApiReady: "False PodsNotReady",
        ModelsReady: "False Canary",
        RolloutHealthy: "True Canary",
      },
    ],
    [
      "could not be written",
      conditionsOf(serving, good, stalled),
      { Ready: "False NameTaken", Stalled: "True NameTaken" },
    ],
    [
      "has no Secret of API keys",
      conditionsOf({ ...serving, keysSecretExists: false }),
      { ApiReady: "False KeysSecretMissing", Stalled: "True KeysSecretMissing" },
    ],
    [
      "has no Secret of the database password",
      conditionsOf({ ...serving, databaseSecretExists: false }),
      { ApiReady: "False DatabaseSecretMissing", Stalled: "True DatabaseSecretMissing" },
    ],
  ])("has the matching conditions if the TtsDeployment %s", (_what, conditions, expected) => {
    expect(conditions).toMatchObject(expected);
  });

  describe("with API pods that are not ready", () => {
    const postgres = { url: "postgres://tts@db/tts", secretRef: { name: "database" } };
    const unready = { api: { deployment: running(1, { availableReplicas: 0 }), pods: [] }, pools: [pool()] };
    const apiReady = (keys: object, more: object = {}) => {
      const facts = observed(ttsDeployment({ api: { keys } }), { ...unready, ...more });
      return deploymentStatus(facts, good, undefined).conditions.find(({ type }) => type === "ApiReady");
    };

    it("reports that the Secret of the database password is missing", () => {
      const condition = apiReady({ postgres }, { databaseSecretExists: false });
      expect(condition).toMatchObject({ status: "False", reason: "DatabaseSecretMissing" });
    });

    it("mentions the database if all keys are in the database", () => {
      const condition = apiReady({ postgres }, { databaseSecretExists: true });
      expect(condition).toMatchObject({
        reason: "PodsNotReady",
        message: expect.stringMatching(/0 of 1 pods.*database/),
      });
      const both = { postgres, secretRef: { name: "keys" } };
      expect(apiReady(both, { databaseSecretExists: true })?.message).toMatch(/0 of 1 pods are ready\.$/);
      // The missing Secret of API keys is reported first.
      const neither = { keysSecretExists: false, databaseSecretExists: false };
      expect(apiReady(both, neither)).toMatchObject({ reason: "KeysSecretMissing" });
    });
  });

  it.each<ReconcileProblem["reason"]>(["NoGpu", "Unschedulable", "ImagePullFailed", "PodsNotReady"])(
    "refers to the condition Ready before the progress deadline, while Ready has the reason %s",
    (reason) => {
      const waiting = pool(1, { reason, message: "Pod a cannot be scheduled.", stalled: false });
      const reports = [
        deploymentStatus(observed(ttsDeployment(), { api, pools: [waiting] }), good, undefined).conditions,
        waiting.pool.status?.conditions ?? [],
      ];
      for (const conditions of reports) {
        const reported = new Map(
          conditions.map(({ type, status, message }) => [type, `${status} ${message}`]),
        );
        expect(reported.get("Ready")).toMatch(/^False .*cannot be scheduled/);
        expect(reported.get("Stalled")).toBe("False Not stalled. The condition Ready says what is missing.");
        expect(reported.get("RolloutHealthy") ?? "True The condition Ready").toMatch(
          /^True.*The condition Ready/,
        );
        expect([...reported.values()].join(" ")).not.toMatch(/no action is needed|rollout is on its way/);
      }
    },
  );

  it("does not use the status of a pool whose current generation is not reconciled", () => {
    const late = pool();
    late.pool.metadata.generation = 2;
    expect(conditionsOf({ api, pools: [late] })).toMatchObject({ Ready: "False Creating" });
  });

  it.each([
    ["host:5000/a/server:1.2.3", "1.2.3"],
    [`host:5000/a/server:1.2.3@${digest}`, "1.2.3"],
    [`host:5000/a/server@${digest}`, "sha256:0123456789ab"],
  ])("has the streams of ready replicas, and for the image %s the version %s", (image, version) => {
    const deployment = running(1);
    deployment.spec = {
      replicas: 1,
      selector: {},
      template: { spec: { containers: [{ name: "api", image }] } },
    };
    const status = deploymentStatus(
      observed(ttsDeployment(), { api: { deployment, pods: [] }, pools: [pool(3)] }),
      good,
      undefined,
    );
    expect(status).toMatchObject({ summary: { models: "1/1", streams: "48" }, version });
  });

  it("shortens a very long version to the limit of the status", () => {
    const deployment = running(1);
    const image = `host:5000/a/server:${"1".repeat(300)}`;
    deployment.spec = {
      replicas: 1,
      selector: {},
      template: { spec: { containers: [{ name: "api", image }] } },
    };
    const whole = observed(ttsDeployment(), { api: { deployment, pods: [] } });
    expect(deploymentStatus(whole, good, undefined).version).toHaveLength(256);
  });

  it("changes the time of a condition only if its status changes", () => {
    const deployment = ttsDeployment();
    const first = deploymentStatus(observed(deployment, { api, pools: [] }), good, undefined);
    deployment.status = first;
    const later = { now: now + 60_000, api };
    const same = deploymentStatus(observed(deployment, { ...later, pools: [] }), good, undefined);
    expect(same).toEqual(first);
    const ready = deploymentStatus(observed(deployment, { ...later, pools: [pool()] }), good, undefined);
    const times = new Map(ready.conditions.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]));
    expect(times.get("Ready")).toBe("2026-01-01T00:01:00Z");
    expect(times.get("ApiReady")).toBe("2026-01-01T00:00:00Z");
  });

  it("causes events for problems and for their ends", () => {
    const before = deploymentStatus(
      observed(ttsDeployment(), { api, pools: [] }),
      good,
      undefined,
    ).conditions;
    const after = deploymentStatus(observed(ttsDeployment(), serving), expired, undefined).conditions;
    const events = transitions(before, after).map(
      ({ condition, worse }) => `${condition.type} ${condition.reason} ${worse}`,
    );
    expect(events).toEqual([
      "Ready LicenseExpired true",
      "Stalled LicenseExpired true",
      "LicenseValid Expired true",
      "ModelsReady Serving false",
    ]);
  });

  it.each([
    ["a pool that is being created", undefined, "Creating", false],
    ["a rollout", "Serving", "RollingOut", false],
    ["pods that are not ready yet", "RollingOut", "PodsNotReady", false],
    ["pods that are no longer ready", "Serving", "PodsNotReady", true],
    ["pods that crash repeatedly", "RollingOut", "CrashLoop", true],
  ])(
    "causes Warning events for problems, and Normal events for progress: %s",
    (_what, before, reason, worse) => {
      const modelsReady = (reason: string) => ({
        type: "ModelsReady",
        status: reason === "Serving" ? ("True" as const) : ("False" as const),
        reason,
        message: "",
        observedGeneration: 1,
        lastTransitionTime: "2026-01-01T00:00:00Z",
      });
      const events = transitions(before === undefined ? [] : [modelsReady(before)], [modelsReady(reason)]);
      expect(events.map((one) => one.worse)).toEqual([worse]);
    },
  );

  it("is Unknown while suspended, and keeps the observed values", () => {
    const deployment = ttsDeployment({ suspend: true });
    deployment.status = deploymentStatus(observed(deployment, serving), good, undefined);
    deployment.metadata.generation = 2;
    const status = suspendedStatus({ deployment, now });
    const conditions = Object.fromEntries(status.conditions.map(({ type, status }) => [type, status]));
    expect(status.observedGeneration).toBe(2);
    expect(conditions).toMatchObject({
      Ready: "Unknown",
      Reconciling: "False",
      Stalled: "False",
      LicenseValid: "True",
    });
  });
});

describe("the status of a pool", () => {
  it("has a selector for autoscalers, and the old current revision until the rollout is complete", () => {
    const observedPool = { pool: ttsModelPool(), workload: { deployment: running(1), pods: [] } };
    observedPool.workload.deployment.metadata.annotations = { "tts.svc.dev/revision": "r1" };
    const first = poolStatus(observedPool, { now, grant: granted, problem: undefined });
    expect(first).toMatchObject({
      selector: "tts.svc.dev/deployment=demo,tts.svc.dev/pool=mist",
      currentRevision: "r1",
      updateRevision: "r1",
    });
    observedPool.pool.status = first;
    const rolling = running(1, { updatedReplicas: 0 });
    rolling.metadata.annotations = { "tts.svc.dev/revision": "r2" };
    const workload = { deployment: rolling, pods: [] };
    const next = poolStatus(
      { pool: observedPool.pool, workload },
      { now, grant: granted, problem: undefined },
    );
    expect(next).toMatchObject({ currentRevision: "r1", updateRevision: "r2" });
  });
});

it("the settings hash of the API tier depends on the pod template, not on replicas", () => {
  const hash = (spec: object) => apiSettings(ttsDeployment({ ...spec }));
  expect(hash({ api: { replicas: 5 } })).toBe(hash({}));
  expect(hash({ api: { service: { type: "NodePort" } } })).toBe(hash({}));
  expect(hash({ api: { image: "other" } })).not.toBe(hash({}));
  // API pods read the profile from the routing table.
  expect(hash({ profile: "cloud" })).toBe(hash({}));
});
