import { afterAll, beforeAll, expect, it } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import type { Pod } from "../../../operator/observed.ts";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** Kubernetes' own scheduler gives pods of a pool the devices that a driver told of (resource.k8s.io/v1); KWOK plays the node. */

const driver = "gpu.example.com";
const template = "large-gpu";
let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ scheduler: true, kwok: true, prepare: installCrds });
  house = await OperatorHouse.open({}, plane.address);
  const room = { cpu: "64", memory: "256Gi", pods: "100" };
  await create({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "gpu" },
    status: { capacity: room, allocatable: room },
  });
  await create({
    apiVersion: "resource.k8s.io/v1",
    kind: "DeviceClass",
    metadata: { name: driver },
    spec: { selectors: [{ cel: { expression: `device.driver == "${driver}"` } }] },
  });
  await create({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name: "gpu" },
    spec: {
      driver,
      nodeName: "gpu",
      pool: { name: "gpu", generation: 1, resourceSliceCount: 1 },
      devices: ["24Gi", "80Gi", "80Gi"].map((value, index) => ({
        name: `gpu-${index}`,
        capacity: { memory: { value } },
      })),
    },
  });
}, 120_000);

afterAll(async () => {
  await house[Symbol.asyncDispose]();
  await plane.stop();
});

async function create(object: object): Promise<void> {
  await kubectlOrThrow(plane.address, ["create", "-f", "-"], JSON.stringify(object));
}

const arcana = (replicas: number) => [
  { name: "arcana", kind: "arcana", replicas, accelerator: { count: 1, claimTemplateName: template } },
];

interface Claim {
  readonly status?: {
    readonly allocation?: { readonly devices: { readonly results: readonly { readonly device: string }[] } };
    readonly reservedFor?: readonly { readonly name: string }[];
  };
}

/** Who has which device. */
async function allocated(): Promise<[string, string][]> {
  const words = ["get", "resourceclaims", "-n", house.namespace, "-o", "json"];
  const { items } = JSON.parse(await kubectlOrThrow(plane.address, words)) as { items: Claim[] };
  return items
    .flatMap(({ status }) =>
      (status?.allocation?.devices.results ?? []).map(({ device }): [string, string] => [
        device,
        status?.reservedFor?.[0]?.name ?? "nobody",
      ]),
    )
    .sort();
}

async function readyPods(): Promise<string[]> {
  const pods = (await house.admin.list("Pod", { namespace: house.namespace })) as Pod[];
  return pods
    .filter(({ metadata, status }) => {
      const ready = status?.conditions?.some(
        (condition) => condition.type === "Ready" && condition.status === "True",
      );
      return metadata.labels?.[labels.pool] === "arcana" && ready && !metadata.deletionTimestamp;
    })
    .map(({ metadata }) => metadata.name)
    .sort();
}

it("each pod has a device of its own that satisfies its claim; what is not there is told, and what is given back is free", async () => {
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment({}, arcana(1));
  await house.until(
    async () => (await house.condition("ModelsReady")).includes(`ResourceClaimTemplate ${template}`),
    "the word of the missing ResourceClaimTemplate",
  );
  const exactly = {
    deviceClassName: driver,
    selectors: [
      { cel: { expression: `device.capacity["${driver}"].memory.compareTo(quantity("40Gi")) >= 0` } },
    ],
  };
  await create({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaimTemplate",
    metadata: { name: template, namespace: house.namespace },
    spec: { spec: { devices: { requests: [{ name: "gpu", exactly }] } } },
  });
  await house.putDeployment({}, arcana(2));
  await house.until(async () => (await readyPods()).length === 2, "two pods");
  const given = await allocated();
  expect(given.map(([device]) => device)).toEqual(["gpu-1", "gpu-2"]);
  expect(given.map(([, pod]) => pod).sort()).toEqual(await readyPods());
  await house.putDeployment({}, arcana(3));
  await house.until(
    async () => /^False NoGpu: .*claim.*claimTemplateName/.test(await house.condition("ModelsReady")),
    "the word of the third device",
  );
  expect(await readyPods()).toHaveLength(2);
  await house.putDeployment({}, arcana(1));
  await house.until(async () => (await allocated()).length === 1, "a device given back");
}, 150_000);
