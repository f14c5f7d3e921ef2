import { describe, expect, it } from "vitest";
import { routingTable } from "../../../../operator/desired/routing-config-map.ts";
import { readTokenSecret, tokenSecret } from "../../../../operator/desired/token-secret.ts";
import { durationSeconds } from "../../../../operator/facts/duration.ts";
import type { ObservedPool } from "../../../../operator/facts/observed.ts";
import { deploymentChildren, poolChildren, poolsToPrune } from "../../../../operator/reconcile/children.ts";
import {
  granted,
  granting,
  now,
  observed,
  serverSettings,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

function poolOf(spec: object, readyReplicas: number): ObservedPool {
  const pool = ttsModelPool({ ...spec });
  const status = { ...pool.status, readyReplicas } as NonNullable<typeof pool.status>;
  return { pool: { ...pool, status }, workload: { deployment: undefined, pods: [] } };
}

describe("the children of a TtsDeployment", () => {
  const deployment = ttsDeployment();
  const all = [
    ...deploymentChildren(observed(deployment), granting("mist"), serverSettings).children,
    ...poolChildren(
      {
        observed: poolOf({}, 0),
        grant: granted,
        now,
        canary: undefined,
        routed: false,
        figures: undefined,
        licensedCanary: 0,
      },
      serverSettings,
    ).children,
  ];

  it("are ordered by their dependencies", () => {
    expect(all.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "ServiceAccount demo-api",
      "ServiceAccount demo-model",
      "Role demo-api",
      "RoleBinding demo-api",
      "ConfigMap demo-routing",
      "Service demo-api",
      "PodDisruptionBudget demo-api",
      "TtsModelPool demo-mist",
      "Deployment demo-api",
      "Service demo-mist",
      "PodDisruptionBudget demo-mist",
      "Deployment demo-mist",
    ]);
  });

  it("have an owner reference and the labels that select them", () => {
    for (const { kind, metadata } of all) {
      expect(metadata.ownerReferences).toMatchObject([{ controller: true, blockOwnerDeletion: true }]);
      expect([kind, metadata.labels]).toEqual([
        kind,
        expect.objectContaining({
          "app.kubernetes.io/managed-by": "tts-operator",
          "tts.svc.dev/deployment": "demo",
        }),
      ]);
    }
  });

  it("allow API pods to read only their routing table and endpoints", () => {
    const role = all.find(({ kind }) => kind === "Role");
    expect(role?.rules).toEqual([
      {
        apiGroups: [""],
        resources: ["configmaps"],
        resourceNames: ["demo-routing"],
        verbs: ["get", "list", "watch"],
      },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["get", "list", "watch"] },
    ]);
  });

  it("set the replicas of a pool only if the spec does", () => {
    const pools = (spec: object) => {
      const deployment = ttsDeployment({}, [{ name: "mist", kind: "mist", ...spec }]);
      return deploymentChildren(observed(deployment), granting("mist"), serverSettings).children.find(
        ({ kind }) => kind === "TtsModelPool",
      )?.spec;
    };
    expect(pools({})).not.toHaveProperty("replicas");
    expect(pools({ replicas: 0 })).toHaveProperty("replicas", 0);
  });

  it("are pruned if the spec no longer names them and they are not being deleted", () => {
    const removed = poolOf({ pool: "old" }, 1);
    const deleting = poolOf({ pool: "older" }, 1);
    deleting.pool.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    const pools = [poolOf({}, 1), removed, deleting];
    expect(poolsToPrune(observed(deployment, { pools }))).toEqual([removed]);
  });
});

describe("the routing table", () => {
  const two = ttsDeployment({}, [
    { name: "a", kind: "mist" },
    { name: "b", kind: "mist" },
    { name: "c", kind: "arcana" },
  ]);
  const grants = new Map([
    ["a", granted],
    ["b", granted],
    ["c", { held: false, replicas: 0 }],
  ]);

  it("routes both models of the mist tier, and marks a pool at zero as idle", () => {
    const { models } = routingTable(observed(two), grants, undefined);
    expect(models.mist).toEqual(models.mistv2);
    expect(models.arcana).toEqual([{ pool: "c", service: "http://demo-c:8080", weight: 100, idle: true }]);
  });

  it.each([
    ["no pool is ready", 0, 0, [100, 100]],
    ["one pool is ready", 0, 1, [0, 100]],
    ["both pools are ready", 2, 1, [100, 100]],
  ])("sets the weights of two pools of the same kind if %s", (_what, a, b, weights) => {
    const pools = [poolOf({ pool: "a" }, a), poolOf({ pool: "b" }, b)];
    const { models } = routingTable(observed(two, { pools }), grants);
    expect(models.mist?.map(({ weight }) => weight)).toEqual(weights);
  });

  it("has licenseRequired only if no license is required", () => {
    const verdict = { state: "not_required", message: "" } as const;
    const { licenseRequired } = routingTable(observed(two), grants, { verdict, failedAt: undefined });
    expect(licenseRequired).toBe(false);
    expect(routingTable(observed(two), grants, granting())).not.toHaveProperty("licenseRequired");
  });

  it("contains the time since which the license is not valid", () => {
    const table = routingTable(observed(two), grants, { failedAt: Date.parse("2026-01-02T03:04:05Z") });
    expect(table.licenseFailedAt).toBe("2026-01-02T03:04:05.000Z");
  });
});

describe("the internal token", () => {
  const deployment = ttsDeployment();

  it("is read from its Secret as it was written, with several accepted tokens", () => {
    const token = { token: "new", accepted: ["old", "new"], changedAt: 7000, askedBy: "me" };
    expect(readTokenSecret(tokenSecret(deployment, token))).toEqual(token);
  });

  it.each([
    ["is empty", "", [""]],
    ["is not among the accepted tokens", "a", ["b"]],
  ])("counts as missing if it %s", (_what, token, accepted) => {
    const internal = { token, accepted, changedAt: undefined, askedBy: undefined };
    expect(readTokenSecret(tokenSecret(deployment, internal))).toBeUndefined();
  });
});

it.each([
  ["72h", 259_200],
  ["1h30m", 5_400],
  ["90s", 90],
  ["0s", 0],
])("durationSeconds(%j) is %d", (text, seconds) => {
  expect(durationSeconds(text)).toBe(seconds);
});
