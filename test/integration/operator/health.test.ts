/**
 * Tests that kstatus (Flux, kpt, Helm) and the health check of Argo CD report the correct health of a
 * TtsDeployment and its pool at every stage. model-cache.test.ts tests the same for a TtsModelCache.
 */
import { beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { argoVerdicts } from "../../support/judges/argo-health.ts";
import { verdictsOf } from "../../support/judges/judges.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

/** The stored objects, by stage. */
const stages = new Map<string, KubernetesObject>();

async function walkThroughStages(house: OperatorHouse): Promise<void> {
  const record = async (stage: string) => {
    stages.set(stage, await house.deployment());
    const pool = await house.get("TtsModelPool", "demo-mist");
    if (pool !== undefined) stages.set(`${stage}, its pool`, pool);
  };
  await house.stopOperator();
  await house.putDeployment();
  await record("new");
  await house.startOperator();
  await house.untilCondition("LicenseValid", /^False/);
  await record("without a license");
  await house.putLicense(await house.issuer.issue());
  await house.untilCondition("Reconciling", /^True/);
  await house.until(
    async () => (await house.get("TtsModelPool", "demo-mist"))?.status !== undefined,
    "the pool",
  );
  await record("starting");
  await house.serve("demo-api", "demo-mist");
  await house.untilReady();
  await record("ready");
  const now = Math.floor(Date.now() / 1000);
  await house.putLicense(await house.issuer.issue({ nbf: now - 7200, exp: now - 60 }));
  await house.untilCondition("LicenseValid", /Expired/);
  await record("in the license's grace");
  await house.putLicense(await house.issuer.issue());
  await house.untilCondition("LicenseValid", /^True/);
  await house.stopOperator();
  await house.putDeployment({ api: { replicas: 2 } });
  stages.set("changed, not reconciled yet", await house.deployment());
  await house.startOperator();
  await house.untilCondition("ApiReady", /^False/);
  stages.set("rolling out", await house.deployment());
  await house.putDeployment({ suspend: true });
  await house.untilCondition("Ready", /Suspended/);
  stages.set("suspended", await house.deployment());
  const deployment = await house.deployment();
  const metadata = { ...deployment.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
  stages.set("being deleted", { ...deployment, metadata });
}

beforeAll(async () => {
  await using house = await OperatorHouse.open();
  await walkThroughStages(house);
}, 600_000);

const expected: readonly (readonly [stage: string, kstatus: string, argo: string])[] = [
  ["new", "InProgress", "Progressing"],
  ["without a license", "Failed", "Degraded"],
  ["starting", "InProgress", "Progressing"],
  ["starting, its pool", "InProgress", "Progressing"],
  ["ready", "Current", "Healthy"],
  ["ready, its pool", "Current", "Healthy"],
  ["in the license's grace", "Current", "Healthy"],
  ["changed, not reconciled yet", "InProgress", "Progressing"],
  ["rolling out", "InProgress", "Progressing"],
  ["suspended", "InProgress", "Suspended"],
  ["being deleted", "Terminating", "Progressing"],
];

describe("a TtsDeployment and its pool", () => {
  it("have the expected status in kstatus at every stage", async () => {
    const verdicts = await verdictsOf(
      "kstatus",
      [],
      expected.map(([stage]) => stages.get(stage) ?? {}),
    );
    expect(expected.map(([stage], index) => [stage, verdicts[index]?.status])).toEqual(
      expected.map(([stage, status]) => [stage, status]),
    );
  });

  it("have the expected status in Argo CD's health check at every stage", async () => {
    const statuses: (readonly [string, string | undefined])[] = [];
    for (const [stage] of expected) {
      const object = stages.get(stage);
      const [verdict] = await argoVerdicts(object?.kind ?? "", object === undefined ? [] : [object]);
      statuses.push([stage, verdict?.status]);
      expect(verdict?.message, stage).not.toBe("nil");
    }
    expect(statuses).toEqual(expected.map(([stage, , status]) => [stage, status]));
  });

  it("show an expired license in the message of Argo CD's health check", async () => {
    const object = stages.get("in the license's grace");
    const [verdict] = await argoVerdicts("TtsDeployment", object === undefined ? [] : [object]);
    expect(verdict?.message).toMatch(/^Expired: /);
  });
});
