/** Planned disruptions of a `TtsDeployment`, which must not interrupt speech. */
import { eventually } from "../eventually.ts";
import type { Deployed } from "./deployed.ts";
import { type Release, run } from "./real-cluster.ts";
import { mist, type World } from "./world.ts";

/** Replaces the pods of the pool `mist`, which has two replicas. */
export async function rollOut({ kubectl }: World, deployed: Deployed): Promise<void> {
  const before = await deployed.pods("mist");
  const restart = `tts.svc.dev/restart=${Date.now()}`;
  await kubectl.do("annotate", "ttsmp", `${deployed.name}-mist`, "--overwrite", restart);
  await deployed.renewed("mist", before, 2);
}

/** Evicts the two pods of the pool `mist` one after the other, within the PodDisruptionBudget. */
export async function evictAll({ kubectl }: World, deployed: Deployed): Promise<void> {
  const before = await deployed.pods("mist");
  for (const pod of before) {
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod } };
    const path = `/api/v1/namespaces/${kubectl.namespace}/pods/${pod}/eviction`;
    await eventually(`the eviction of ${pod}`, async () => {
      const ran = await run("kubectl", ["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
      if (ran.code !== 0 && !ran.stderr.includes("disruption budget")) throw new Error(ran.stderr);
      return ran.code === 0;
    });
  }
  await deployed.renewed("mist", before, 2);
}

/** Scales the pool `mist` from two replicas to one. */
export async function scaleDown(deployed: Deployed, more: Record<string, unknown> = {}): Promise<void> {
  await deployed.setModels(mist({ ...more, replicas: 1 }));
  await eventually("one pod of the pool", async () => (await deployed.everyPod("mist")).length === 1);
}

/** Replaces the two API pods. */
export async function restartApi({ kubectl }: World, deployed: Deployed): Promise<void> {
  const names = async () => (await deployed.apiPods()).map(({ metadata }) => metadata.name);
  const before = await names();
  await kubectl.do("rollout", "restart", `deployment/${deployed.name}-api`);
  await kubectl.do("rollout", "status", `deployment/${deployed.name}-api`, "--timeout=300s");
  await eventually("two new API pods", async () => {
    const now = await names();
    return now.length === 2 && now.every((pod) => !before.includes(pod));
  });
}

/** Makes a change that replaces the operator's pod, and waits until the new operator has reconciled. */
export async function replaceOperator(
  world: World,
  deployed: Deployed,
  release: Release,
  change: () => Promise<void>,
): Promise<void> {
  const operators = await release.operatorPods();
  await change();
  await release.replaced(operators);
  await world.condition(deployed.name, "Ready", "True");
}
