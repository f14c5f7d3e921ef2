/**
 * Tests pods with the controllers of Kubernetes, which create, schedule and evict the pods and allocate
 * devices. KWOK simulates one node and makes scheduled pods ready. The node has two GPUs, and three devices
 * of a driver for dynamic resource allocation (resource.k8s.io/v1).
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { Pod } from "../../../operator/facts/observed.ts";
import { clusterRequest, clusterRequestOrThrow } from "../../support/cluster/cluster-request.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { History, type Version, versionOf } from "../../support/operator/history.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

const driver = "gpu.example.com";
const node = "node";
let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  const controllers = ["disruption-controller"];
  plane = await controlPlane({ scheduler: true, kwok: true, controllers, prepare: installCrds });
  const capacity = { cpu: "256", memory: "1Ti", pods: "400", "nvidia.com/gpu": "2" };
  const status = { capacity, allocatable: capacity };
  await create({ apiVersion: "v1", kind: "Node", metadata: { name: node }, status });
  const selectors = [{ cel: { expression: `device.driver == "${driver}"` } }];
  await create({
    apiVersion: "resource.k8s.io/v1",
    kind: "DeviceClass",
    metadata: { name: driver },
    spec: { selectors },
  });
  const devices = ["24Gi", "80Gi", "80Gi"].map((value, index) => ({
    name: `gpu-${index}`,
    capacity: { memory: { value } },
  }));
  const pool = { name: "gpu", generation: 1, resourceSliceCount: 1 };
  await create({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name: "gpu" },
    spec: { driver, nodeName: node, pool, devices },
  });
});

afterAll(() => plane.stop());

beforeEach(async () => {
  house = await OperatorHouse.open({}, plane.address);
  await house.putLicense(await house.issuer.issue());
});

afterEach(() => house[Symbol.asyncDispose]());

async function create(object: object): Promise<void> {
  await kubectlOrThrow(plane.address, ["create", "-f", "-"], JSON.stringify(object));
}

/** Returns the pods of a pool, including pods that are being deleted. */
async function everyPod(pool: string): Promise<Pod[]> {
  const labelSelector = `${labels.pool}=${pool}`;
  return (await house.admin.list("Pod", { namespace: house.namespace, labelSelector })) as Pod[];
}

async function podsOf(pool: string): Promise<Pod[]> {
  return (await everyPod(pool)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

const isReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;

describe("devices that a driver reports", () => {
  const template = "large-gpu";
  const arcana = (replicas: number) => [
    { name: "arcana", kind: "arcana", replicas, accelerator: { count: 1, claimTemplateName: template } },
  ];
  const exactly = {
    deviceClassName: driver,
    selectors: [
      { cel: { expression: `device.capacity["${driver}"].memory.compareTo(quantity("40Gi")) >= 0` } },
    ],
  };

  interface Claim {
    readonly status?: {
      readonly allocation?: {
        readonly devices: { readonly results: readonly { readonly device: string }[] };
      };
      readonly reservedFor?: readonly { readonly name: string }[];
    };
  }

  /** Returns each allocated device with the pod that uses it. */
  async function allocated(): Promise<[string, string][]> {
    const { items } = JSON.parse(await house.kubectl("get", "resourceclaims", "-o", "json")) as {
      items: Claim[];
    };
    return items
      .flatMap(({ status }) =>
        (status?.allocation?.devices.results ?? []).map(({ device }): [string, string] => [
          device,
          status?.reservedFor?.[0]?.name ?? "no pod",
        ]),
      )
      .sort();
  }

  const readyPods = async () =>
    (await podsOf("arcana"))
      .filter(isReady)
      .map(({ metadata }) => metadata.name)
      .sort();

  it("are each allocated to one pod by claims, are reported if too few exist, and are free after a scale-down", async () => {
    await house.putDeployment({}, arcana(1));
    await house.untilCondition("ModelsReady", new RegExp(`ResourceClaimTemplate ${template}`));
    await create({
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaimTemplate",
      metadata: { name: template, namespace: house.namespace },
      spec: { spec: { devices: { requests: [{ name: "gpu", exactly }] } } },
    });
    await house.putDeployment({}, arcana(2));
    await house.until(async () => (await readyPods()).length === 2, "two pods");
    const allocations = await allocated();
    expect(allocations.map(([device]) => device)).toEqual(["gpu-1", "gpu-2"]);
    expect(allocations.map(([, pod]) => pod).sort()).toEqual(await readyPods());
    await house.putDeployment({}, arcana(3));
    await house.untilCondition("ModelsReady", /^False NoGpu: .*claim.*claimTemplateName/);
    expect(await readyPods()).toHaveLength(2);
    await house.putDeployment({}, arcana(1));
    await house.until(async () => (await allocated()).length === 1, "a free device");
  });
});

describe("a rollout without a free GPU", () => {
  /** Returns the lowest number of ready pods after two pods were ready. */
  function fewestServing(versions: readonly Version[]): number {
    const serving = new Set<string>();
    let most = 0;
    let fewest = Number.POSITIVE_INFINITY;
    for (const { type, object } of versions) {
      if (object.metadata.labels?.[labels.pool] !== "arcana") continue;
      const { name, deletionTimestamp } = object.metadata;
      if (type !== "DELETED" && deletionTimestamp === undefined && isReady(object as Pod)) serving.add(name);
      else serving.delete(name);
      most = Math.max(most, serving.size);
      if (most === 2) fewest = Math.min(fewest, serving.size);
    }
    return fewest;
  }

  const arcana = (whenFull: string, maxConcurrentStreams: number) => [
    {
      ...{ name: "arcana", kind: "arcana", replicas: 2, accelerator: { count: 1 } },
      ...{ maxConcurrentStreams, rollout: { whenFull } },
    },
  ];

  const revisions = async () =>
    (await everyPod("arcana"))
      .filter(isReady)
      .map(({ metadata }) => metadata.labels?.["tts.svc.dev/revision"] ?? "")
      .sort();

  it("completes by trades of one pod at a time, also across a restart of the operator", async () => {
    using history = await History.of(house.admin, "Pod", house.namespace);
    await house.putDeployment({}, arcana("Wait", 4));
    await house.until(async () => (await revisions()).length === 2, "two pods");
    const [before] = await revisions();
    await house.putDeployment({}, arcana("Wait", 5));
    await house.until(async () => (await everyPod("arcana")).length === 3, "the new pod");
    await house.untilCondition("ModelsReady", /^False NoGpu/);
    await house.idle();
    const waited = versionOf(await house.deployment());
    await house.putDeployment({}, arcana("Trade", 5));
    await house.until(
      async () => (await revisions()).some((revision) => revision !== before),
      "the first new pod",
    );
    await house.restart();
    await house.until(async () => {
      const now = await revisions();
      return now.length === 2 && !now.includes(before ?? "") && (await everyPod("arcana")).length === 2;
    }, "two new pods");
    const versions = await history.versions();
    expect(fewestServing(versions)).toBe(1);
    const ended = versions.filter(({ object }) => object.metadata.deletionTimestamp !== undefined);
    expect(ended.filter(({ object }) => versionOf(object) <= waited)).toEqual([]);
    await house.until(
      async () => (await house.workload("demo-arcana")).spec?.strategy?.rollingUpdate?.maxUnavailable === 0,
      "the end of the trade",
    );
  });
});

describe("a PodDisruptionBudget", () => {
  interface Budget extends KubernetesObject {
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

  /** Resolves when the disruption controller has counted the given number of pods, and all are healthy. */
  async function counted(name: string, pods: number, maxUnavailable?: unknown): Promise<Budget> {
    let budget: Budget | undefined;
    await house.until(async () => {
      budget = (await house.get("PodDisruptionBudget", name)) as Budget | undefined;
      if (budget === undefined) return false;
      const { metadata, spec, status } = budget;
      const current = (spec as { maxUnavailable?: unknown } | undefined)?.maxUnavailable;
      return (
        (maxUnavailable === undefined || current === maxUnavailable) &&
        status?.observedGeneration === metadata.generation &&
        status?.expectedPods === pods &&
        status.currentHealthy === pods
      );
    }, `${pods} healthy pods in the status of ${name}`);
    return budget as Budget;
  }

  async function evict(pod: Pod | undefined): Promise<number> {
    if (pod === undefined) throw new Error("the pool has no pod to evict");
    const metadata = { name: pod.metadata.name, namespace: house.namespace };
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/eviction`;
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata };
    return (await clusterRequest(plane.address, { method: "POST", path, body })).status;
  }

  async function cordon(unschedulable: boolean): Promise<void> {
    await clusterRequestOrThrow(plane.address, {
      method: "PATCH",
      path: `/api/v1/nodes/${node}`,
      body: { spec: { unschedulable } },
      type: "application/merge-patch+json",
    });
  }

  it("allows at least one eviction for every setting and number of pods", async () => {
    for (const pods of [1, 2]) {
      for (const maxUnavailable of [undefined, 1, 3, "1%", "50%"]) {
        await put(pods, maxUnavailable === undefined ? {} : { maxUnavailable });
        for (const name of ["demo-api", "demo-mist"]) {
          const { status } = await counted(name, pods, maxUnavailable);
          const description = `${name} of ${pods} pods, maxUnavailable ${maxUnavailable}`;
          expect(status?.disruptionsAllowed, description).toBeGreaterThanOrEqual(1);
        }
      }
    }
  });

  it("allows the next eviction in a pool only when the replacement of the evicted pod is ready", async () => {
    await put(2);
    await counted("demo-mist", 2);
    const [first, second] = await podsOf("mist");
    await cordon(true);
    try {
      expect(await evict(first)).toBe(201);
      await house.until(async () => (await podsOf("mist")).length === 2, "the unscheduled replacement");
      expect(await evict(second)).toBe(429);
      expect((await podsOf("mist")).map(({ metadata }) => metadata.uid)).toContain(second?.metadata.uid);
    } finally {
      await cordon(false);
    }
    await house.until(async () => (await evict(second)) === 201, "the eviction of the second pod");
  });

  it("allows the eviction of the only pod of a pool", async () => {
    await put(1);
    await counted("demo-mist", 1);
    const [only] = await podsOf("mist");
    expect(await evict(only)).toBe(201);
  });
});
