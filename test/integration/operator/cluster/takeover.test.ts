import { beforeEach, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import type { TtsDeployment } from "../../../../operator/facts/observed.ts";
import { History } from "../../../support/operator/history.ts";
import { type OperatorHouse, useOperatorHouse } from "../../../support/operator/operator-house.ts";

let house: OperatorHouse;

useOperatorHouse((opened) => {
  house = opened;
});

/** Returns the reconciled keys, in order. */
function reconciledKeys(): string[] {
  return house.lines.flatMap((line) => /^a reconcile has ended .*"key":"([^"]+)"/.exec(line)?.[1] ?? []);
}

it("an operator that starts reconciles first the objects that changed while no operator ran", async () => {
  await house.ready();
  const others = ["another", "before", "case"];
  for (const name of others) await house.putDeployment({}, undefined, name);
  for (const name of others) await house.untilCondition("LicenseValid", /^True/, name);
  await house.idle();
  await house.stopOperator();
  house.lines.length = 0;
  await house.putDeployment({ api: { replicas: 3 } });
  await house.startOperator({ workers: 1 });
  await house.until(async () => reconciledKeys().length >= 3 * others.length, "reconciles of all objects");
  expect(reconciledKeys()[0]).toBe(`TtsDeployment/${house.namespace}/demo`);
});

it("an operator starts although a watched namespace was deleted, and reconciles the namespace when it exists again", async () => {
  await house.stopOperator();
  const deleted = `${house.namespace}-deleted`;
  await house.startOperator({ moreNamespaces: [deleted] });
  expect(house.lines.join("\n")).toContain("the operator has no permission to read the namespace (403)");
  expect(house.failingWatches()).toContainEqual({ kind: "TtsDeployment", namespace: deleted, count: 1 });

  await house.admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: deleted } });
  await house.admin.create(demoIn(deleted));
  for (const kind of ["Role", "RoleBinding"]) {
    for (const { metadata, ...rest } of await house.admin.list(kind, { namespace: house.namespace }))
      await house.admin.create({ ...rest, metadata: { name: metadata.name, namespace: deleted } });
  }
  await house.until(async () => (await conditionsIn(deleted)) > 0, "the status of the TtsDeployment");
  // The operator retries the watch of each kind after a separate delay, so the watch of Secrets may still fail when the
  // status is written.
  await house.until(async () => house.failingWatches().length === 0, "no failing watch");

  await house.ready();
});

it("an operator deletes nothing because of an outdated TtsDeployment in its cache", async () => {
  const mist = { name: "mist", kind: "mist" };
  await house.ready({}, [mist]);
  const before = await house.deployment();
  await house.putDeployment({ networkPolicy: { enabled: true } }, [mist, { name: "second", kind: "mist" }]);
  await house.untilThere("TtsModelPool", "demo-second");
  await house.idle();
  await house.stopOperator();
  house.lines.length = 0;

  using pools = await History.of(house.admin, "TtsModelPool", house.namespace);
  using policies = await History.of(house.admin, "NetworkPolicy", house.namespace);
  const { resourceVersion } = before.metadata;
  const body = { kind: "TtsDeploymentList", metadata: { resourceVersion }, items: [before] };
  house.proxy.rule = ({ path, watch }) => {
    if (!path.endsWith("/ttsdeployments")) return undefined;
    return watch ? { kind: "hang" } : { kind: "answer", status: 200, body };
  };
  await house.startOperator();
  await house.until(
    async () => reconciledKeys().filter((key) => key.endsWith("/demo")).length > 0,
    "a reconcile of the outdated TtsDeployment",
  );
  const versions = [...(await pools.versions()), ...(await policies.versions())];
  const deleted = versions.filter(({ type }) => type === "DELETED");
  expect(deleted.map(({ object }) => object.metadata.name)).toEqual([]);
  house.abandonOperators();
});

function demoIn(namespace: string): KubernetesObject {
  const spec = { license: { secretRef: { name: "license" } }, models: [{ name: "mist", kind: "mist" }] };
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsDeployment",
    metadata: { name: "demo", namespace },
    spec,
  };
}

async function conditionsIn(namespace: string): Promise<number> {
  const ref = { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsDeployment", namespace, name: "demo" };
  return ((await house.admin.get(ref)) as TtsDeployment).status?.conditions.length ?? 0;
}

const image = (version: string) => `registry.example/svc-tts/server:${version}`;
const conflict = /^False OperatorConflict: .*Their Leases are one\/tts-operator and two\/tts-operator/;

const signer = async () => ((await house.deployment()).status as { operator?: string } | undefined)?.operator;

describe("two operators of one namespace", () => {
  beforeEach(() => house.stopOperator());

  it.each([
    ["the first operator started earlier", "one/tts-operator", "two/tts-operator"],
    ["the second operator started earlier", "two/tts-operator", "one/tts-operator"],
  ])("report the conflict, and only one continues, if %s", async (_when, before, after) => {
    await house.startOperator({ release: before, image: image("1") });
    await house.ready();
    expect(await house.condition("SoleOperator")).toBe("absent");
    await house.startOperator({ release: after, image: image("2") });
    // After this change, each operator has to write.
    await house.putDeployment({ api: { replicas: 2 } });
    await house.serve("demo-api");
    await house.untilCondition("SoleOperator", conflict);
    await house.until(
      async () => (await signer()) === "one/tts-operator",
      "the status of the first operator",
    );
    expect(await house.writesDuring(1_500)).toBe(0);
    expect(await house.condition("SoleOperator")).toMatch(conflict);
    expect(await signer()).toBe("one/tts-operator");
    expect(house.lines.join("\n")).toContain("another operator also reconciles this TtsDeployment");
  });

  it("report no conflict when a new leader takes over", async () => {
    await house.startOperator({ release: "two/tts-operator" });
    await house.ready();
    await house.restart({ release: "one/tts-operator" });
    await house.until(async () => (await signer()) === "one/tts-operator", "the status of the new leader");
    await house.idle();
    expect(await house.condition("SoleOperator")).toBe("absent");
  });
});
