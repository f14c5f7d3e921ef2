import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type { Manifest } from "../../../operator/manifest.ts";
import { clusterRequest, clusterRequestOrThrow } from "../../support/cluster-request.ts";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installCrds } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/**
 * Kubernetes' own disruption controller and eviction API judge the operator's budgets. Its Deployment controller and
 * scheduler make the pods; KWOK plays the node, where a placed pod is ready.
 */

let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  const controllers = ["disruption-controller"];
  plane = await controlPlane({ scheduler: true, kwok: true, controllers, prepare: installCrds });
  const room = { cpu: "64", memory: "256Gi", pods: "100" };
  await clusterRequestOrThrow(plane.address, {
    method: "POST",
    path: "/api/v1/nodes",
    body: {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "node" },
      status: { capacity: room, allocatable: room },
    },
  });
});

afterAll(() => plane.stop());

beforeEach(async () => {
  house = await OperatorHouse.open({}, plane.address);
  await house.putLicense(await house.issuer.issue());
});

afterEach(() => house[Symbol.asyncDispose]());

interface Budget extends Manifest {
  readonly status?: {
    readonly observedGeneration?: number;
    readonly expectedPods: number;
    readonly currentHealthy: number;
    readonly disruptionsAllowed: number;
  };
}

async function put(replicas: number, podDisruptionBudget: object = {}): Promise<void> {
  const spec = { api: { replicas }, availability: { podDisruptionBudget } };
  await house.putDeployment(spec, [{ name: "mist", kind: "mist", replicas }]);
}

/** Resolves when the disruption controller has counted so many pods, all healthy. */
async function counted(name: string, pods: number, maxUnavailable?: unknown): Promise<Budget> {
  let found: Budget | undefined;
  await house.until(async () => {
    found = (await house.get("PodDisruptionBudget", name)) as Budget | undefined;
    if (found === undefined) return false;
    const { metadata, spec, status } = found;
    const wished = (spec as { maxUnavailable?: unknown } | undefined)?.maxUnavailable;
    return (
      (maxUnavailable === undefined || wished === maxUnavailable) &&
      status?.observedGeneration === metadata.generation &&
      status?.expectedPods === pods &&
      status.currentHealthy === pods
    );
  }, `${pods} healthy pods in the status of ${name}`);
  return found as Budget;
}

async function podsOf(pool: string): Promise<Manifest[]> {
  const labelSelector = `tts.svc.dev/pool=${pool}`;
  const pods = await house.admin.list("Pod", { namespace: house.namespace, labelSelector });
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

async function evict({ metadata: { name } }: Manifest): Promise<number> {
  const path = `/api/v1/namespaces/${house.namespace}/pods/${name}/eviction`;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: house.namespace } };
  return (await clusterRequest(plane.address, { method: "POST", path, body })).status;
}

async function cordon(unschedulable: boolean): Promise<void> {
  await clusterRequestOrThrow(plane.address, {
    method: "PATCH",
    path: "/api/v1/nodes/node",
    body: { spec: { unschedulable } },
    type: "application/merge-patch+json",
  });
}

it("a budget lets a drain take a pod, whatever it is set to and however few pods there are", async () => {
  for (const pods of [1, 2]) {
    for (const maxUnavailable of [undefined, 1, 3, "1%", "50%"]) {
      await put(pods, maxUnavailable === undefined ? {} : { maxUnavailable });
      for (const name of ["demo-api", "demo-mist"]) {
        const { status } = await counted(name, pods, maxUnavailable);
        expect({ pods, maxUnavailable, name, allowed: (status?.disruptionsAllowed ?? 0) >= 1 }).toEqual({
          pods,
          maxUnavailable,
          name,
          allowed: true,
        });
      }
    }
  }
});

it("evictions take one pod of a pool, and the next one only when its replacement is ready", async () => {
  await put(2);
  await counted("demo-mist", 2);
  const [first, second] = await podsOf("mist");
  if (first === undefined || second === undefined) throw new Error("the pool has fewer than two pods");
  await cordon(true);
  expect(await evict(first)).toBe(201);
  await house.until(async () => (await podsOf("mist")).length === 2, "the replacement, without a node");
  expect(await evict(second)).toBe(429);
  expect((await podsOf("mist")).map(({ metadata }) => metadata.name)).toContain(second.metadata.name);
  await cordon(false);
  await house.until(async () => (await evict(second)) === 201, "the eviction of the second pod");
});

it("an eviction takes the only pod of a pool", async () => {
  await put(1);
  await counted("demo-mist", 1);
  const [only] = await podsOf("mist");
  if (only === undefined) throw new Error("the pool has no pod");
  expect(await evict(only)).toBe(201);
});
