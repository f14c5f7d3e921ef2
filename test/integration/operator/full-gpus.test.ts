import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../../operator/observed.ts";
import { clusterRequestOrThrow } from "../../support/cluster-request.ts";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { History, type Version, versionOf } from "../../support/history.ts";
import { installCrds } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** Kubernetes' own scheduler and Deployment controller; KWOK plays one node with two GPUs, and the pods on it. */

let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ scheduler: true, kwok: true, prepare: installCrds });
  const room = { cpu: "64", memory: "256Gi", pods: "100", "nvidia.com/gpu": "2" };
  await clusterRequestOrThrow(plane.address, {
    method: "POST",
    path: "/api/v1/nodes",
    body: {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "gpu" },
      status: { capacity: room, allocatable: room },
    },
  });
  house = await OperatorHouse.open({}, plane.address);
});

afterAll(async () => {
  await house[Symbol.asyncDispose]();
  await plane.stop();
});

async function pods(pool = "arcana"): Promise<Pod[]> {
  const all = (await house.admin.list("Pod", { namespace: house.namespace })) as Pod[];
  return all.filter(({ metadata }) => metadata.labels?.["tts.svc.dev/pool"] === pool);
}

const isReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;

/** The fewest pods that served at one time, once two did. */
function fewestServing(versions: readonly Version[]): number {
  const serving = new Set<string>();
  let most = 0;
  let fewest = Number.POSITIVE_INFINITY;
  for (const { type, object } of versions) {
    if (object.metadata.labels?.["tts.svc.dev/pool"] !== "arcana") continue;
    const { name, deletionTimestamp } = object.metadata;
    if (type !== "DELETED" && deletionTimestamp === undefined && isReady(object as Pod)) serving.add(name);
    else serving.delete(name);
    most = Math.max(most, serving.size);
    if (most === 2) fewest = Math.min(fewest, serving.size);
  }
  return fewest;
}

const arcana = (whenFull: string, streams: number) => [
  {
    name: "arcana",
    kind: "arcana",
    replicas: 2,
    maxConcurrentStreams: streams,
    accelerator: { count: 1 },
    rollout: { whenFull },
  },
];

async function revisions(): Promise<string[]> {
  return (await pods())
    .filter(isReady)
    .map(({ metadata }) => metadata.labels?.["tts.svc.dev/revision"] ?? "")
    .sort();
}

it("does not end where every GPU is taken and pods wait for room; it ends by the trade, one pod at a time, across restarts", async () => {
  using history = await History.of(house.admin, "Pod", house.namespace);
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment({}, arcana("Wait", 4));
  await house.until(async () => (await revisions()).length === 2, "two pods");
  const [before] = await revisions();
  await house.putDeployment({}, arcana("Wait", 5));
  await house.until(async () => (await pods()).length === 3, "the new pod");
  await house.until(
    async () => (await house.condition("ModelsReady")).startsWith("False NoGpu"),
    "the missing GPU",
  );
  await house.idle();
  const waited = versionOf(await house.deployment());
  await house.putDeployment({}, arcana("Trade", 5));
  await house.until(async () => (await revisions()).some((revision) => revision !== before), "the first");
  await house.stopOperator();
  await house.startOperator();
  await house.until(async () => {
    const now = await revisions();
    return now.length === 2 && !now.includes(before ?? "") && (await pods()).length === 2;
  }, "the last");
  const versions = await history.versions();
  expect(fewestServing(versions)).toBe(1);
  const ended = versions.filter(({ object }) => object.metadata.deletionTimestamp !== undefined);
  expect(ended.filter(({ object }) => versionOf(object) <= waited)).toEqual([]);
  await house.until(
    async () => (await house.workload("demo-arcana")).spec?.strategy?.rollingUpdate?.maxUnavailable === 0,
    "the end of the trade",
  );
});
