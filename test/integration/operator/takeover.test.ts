import { afterEach, beforeEach, expect, it } from "vitest";
import type { Manifest } from "../../../operator/manifest.ts";
import type { TtsDeployment } from "../../../operator/observed.ts";
import { History } from "../../support/history.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

let house: OperatorHouse;

beforeEach(async () => {
  house = await OperatorHouse.open();
});
afterEach(() => house[Symbol.asyncDispose]());

/** What had a pass, in order. */
function passes(): string[] {
  return house.lines.flatMap((line) => /^pass .*"key":"([^"]+)"/.exec(line)?.[1] ?? []);
}

it("an operator that starts looks first at what changed while there was none", async () => {
  await house.ready();
  const others = ["another", "before", "case"];
  for (const name of others) await house.putDeployment({}, undefined, name);
  for (const name of others)
    await house.until(async () => (await house.condition("LicenseValid", name)).startsWith("True"), name);
  await house.idle();
  await house.stopOperator();
  house.lines.length = 0;
  await house.putDeployment({ api: { replicas: 3 } });
  await house.startOperator({ workers: 1 });
  await house.until(async () => passes().length >= 3 * others.length, "passes over all");
  expect(passes()[0]).toBe(`TtsDeployment/${house.namespace}/demo`);
});

it("starts although one of its namespaces was deleted, and serves that once it is there with the operator's role", async () => {
  await house.stopOperator();
  const deleted = `${house.namespace}-deleted`;
  await house.startOperator({ moreNamespaces: [deleted] });
  expect(house.lines.join("\n")).toContain(`may not be read (403)`);
  expect(house.failingWatches()).toContainEqual({ kind: "TtsDeployment", namespace: deleted, count: 1 });

  await house.admin.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: deleted } });
  await house.admin.create(demoIn(deleted));
  for (const kind of ["Role", "RoleBinding"]) {
    for (const { metadata, ...rest } of await house.admin.list(kind, { namespace: house.namespace }))
      await house.admin.create({ ...rest, metadata: { name: metadata.name, namespace: deleted } });
  }
  await house.until(async () => (await conditionsIn(deleted)) > 0, "the status of the TtsDeployment");
  expect(house.failingWatches()).toEqual([]);

  await house.ready();
});

it("removes nothing by a copy of the TtsDeployment that is older than what another operator acted upon", async () => {
  const mist = { name: "mist", kind: "mist" };
  await house.ready({}, [mist]);
  const before = await house.deployment();
  await house.putDeployment({ networkPolicy: { enabled: true } }, [mist, { name: "second", kind: "mist" }]);
  await house.until(async () => (await house.get("TtsModelPool", "demo-second")) !== undefined, "the pool");
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
    async () => passes().filter((key) => key.endsWith("/demo")).length > 0,
    "a pass by the old copy",
  );
  const seen = [...(await pools.versions()), ...(await policies.versions())];
  expect(seen.filter(({ type }) => type === "DELETED").map(({ object }) => object.metadata.name)).toEqual([]);
  house.abandonOperators();
});

function demoIn(namespace: string): Manifest {
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
