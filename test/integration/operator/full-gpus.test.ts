import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../../operator/observed.ts";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** Kubernetes' own scheduler and Deployment controller, one node with two GPUs, and pods that are played. */

let plane: ControlPlane;
let house: OperatorHouse;
let playing: NodeJS.Timeout;
let mostServing = 0;
let fewestServing = Number.POSITIVE_INFINITY;

beforeAll(async () => {
  plane = await controlPlane({ scheduler: true, prepare: installCrds });
  house = await OperatorHouse.open({}, plane.address);
  await makeNode({ cpu: "64", memory: "256Gi", pods: "100", "nvidia.com/gpu": "2" });
  playing = setInterval(() => void play().catch(() => undefined), 150);
}, 120_000);

afterAll(async () => {
  clearInterval(playing);
  await house[Symbol.asyncDispose]();
  await plane.stop();
});

/** The API server taints a new node until somebody says that it is ready. */
async function makeNode(resources: Record<string, string>): Promise<void> {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "gpu" } };
  await kubectlOrThrow(plane.address, ["create", "-f", "-"], JSON.stringify(node));
  const conditions = [{ type: "Ready", status: "True" }];
  const status = { capacity: resources, allocatable: resources, conditions };
  const patch = ["patch", "node", "gpu", "--type=merge", "-p"];
  await kubectlOrThrow(plane.address, [...patch, JSON.stringify({ status }), "--subresource=status"]);
  await kubectlOrThrow(plane.address, [...patch, JSON.stringify({ spec: { taints: null } })]);
}

async function pods(pool = "arcana"): Promise<Pod[]> {
  const all = (await house.admin.list("Pod", { namespace: house.namespace })) as Pod[];
  return all.filter(({ metadata }) => metadata.labels?.["tts.svc.dev/pool"] === pool);
}

const isReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;

/** As a kubelet: what is placed runs and is ready; what is to end drains for a second. */
async function play(): Promise<void> {
  const all = (await house.admin.list("Pod", { namespace: house.namespace })) as Pod[];
  for (const pod of all) {
    const { name, deletionTimestamp } = pod.metadata;
    if (deletionTimestamp !== undefined) {
      const now = ["--grace-period=0", "--force", "--wait=false", "--ignore-not-found"];
      await kubectlOrThrow(plane.address, ["delete", "pod", "-n", house.namespace, name, ...now]);
    } else if (pod.spec?.nodeName && !isReady(pod)) {
      const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True" }));
      await house.setStatus(pod, { phase: "Running", conditions });
    }
  }
  const serving = (await pods()).filter((pod) => isReady(pod) && !pod.metadata.deletionTimestamp).length;
  mostServing = Math.max(mostServing, serving);
  if (mostServing === 2) fewestServing = Math.min(fewestServing, serving);
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
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment({}, arcana("Wait", 4));
  await house.until(async () => (await revisions()).length === 2, "two pods");
  const [before] = await revisions();
  await house.putDeployment({}, arcana("Wait", 5));
  await house.until(async () => (await pods()).length === 3, "the new pod");
  await new Promise((resolve) => setTimeout(resolve, 14_000));
  expect(await revisions()).toEqual([before, before]);
  expect(await house.condition("ModelsReady")).toMatch(/^False NoGpu/);
  await house.putDeployment({}, arcana("Trade", 5));
  await house.until(async () => (await revisions()).some((revision) => revision !== before), "the first");
  await house.stopOperator();
  await house.startOperator();
  await house.until(async () => {
    const now = await revisions();
    return now.length === 2 && !now.includes(before ?? "") && (await pods()).length === 2;
  }, "the last");
  expect(fewestServing).toBeGreaterThanOrEqual(1);
  await house.until(
    async () => (await house.workload("demo-arcana")).spec?.strategy?.rollingUpdate?.maxUnavailable === 0,
    "the end of the trade",
  );
}, 150_000);
