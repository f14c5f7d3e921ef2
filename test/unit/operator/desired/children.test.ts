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

describe("children", () => {
  const deployment = ttsDeployment();
  const all = [
    ...deploymentChildren(observed(deployment), granting("mist"), serverSettings).children,
    ...poolChildren(
      { observed: poolOf({}, 0), grant: granted, now, canary: undefined, routed: false, figures: undefined },
      serverSettings,
    ).children,
  ];

  it("are in the order in which they depend on each other", () => {
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

  it("have their owner and the labels that select them", () => {
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

  it("let API pods read their own routing table and endpoints, and nothing else", () => {
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

  it("do not set the replicas of a pool unless the spec does", () => {
    const pools = (spec: object) => {
      const wish = ttsDeployment({}, [{ name: "mist", kind: "mist", ...spec }]);
      return deploymentChildren(observed(wish), granting("mist"), serverSettings).children.find(
        ({ kind }) => kind === "TtsModelPool",
      )?.spec;
    };
    expect(pools({})).not.toHaveProperty("replicas");
    expect(pools({ replicas: 0 })).toHaveProperty("replicas", 0);
  });

  it("that the spec no longer names are pruned once", () => {
    const gone = poolOf({ pool: "old" }, 1);
    const going = poolOf({ pool: "older" }, 1);
    going.pool.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    const pools = [poolOf({}, 1), gone, going];
    expect(poolsToPrune(observed(deployment, { pools }))).toEqual([gone]);
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
    ["none is ready", 0, 0, [100, 100]],
    ["one is ready", 0, 1, [0, 100]],
    ["both are ready", 2, 1, [100, 100]],
  ])("weighs pools of one kind if %s", (_what, a, b, weights) => {
    const pools = [poolOf({ pool: "a" }, a), poolOf({ pool: "b" }, b)];
    const { models } = routingTable(observed(two, { pools }), grants);
    expect(models.mist?.map(({ weight }) => weight)).toEqual(weights);
  });

  it("says where no license is required, and nothing where one is", () => {
    const verdict = { state: "not_required", message: "" } as const;
    const { licenseRequired } = routingTable(observed(two), grants, { verdict, failedAt: undefined });
    expect(licenseRequired).toBe(false);
    expect(routingTable(observed(two), grants, granting())).not.toHaveProperty("licenseRequired");
  });

  it("tells since when the license is not good", () => {
    const table = routingTable(observed(two), grants, { failedAt: Date.parse("2026-01-02T03:04:05Z") });
    expect(table.licenseFailedAt).toBe("2026-01-02T03:04:05.000Z");
  });
});

describe("the internal token", () => {
  const deployment = ttsDeployment();

  it("equals the written table when it is read, with several accepted tokens", () => {
    const token = { token: "new", accepted: ["old", "new"], changedAt: 7000, askedBy: "me" };
    expect(readTokenSecret(tokenSecret(deployment, token))).toEqual(token);
  });

  it.each([
    ["is empty", "", [""]],
    ["would not be accepted", "a", ["b"]],
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
])("a duration of %s is %d seconds", (text, seconds) => {
  expect(durationSeconds(text)).toBe(seconds);
});
