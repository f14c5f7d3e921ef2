import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { ClusterCache } from "../../../operator/cluster/cache.ts";
import type { ClusterClient, ListOptions } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function demo(resourceVersion: string, generation: number): KubernetesObject {
  const metadata = { name: "demo", namespace: "ns", uid: "1", resourceVersion, generation };
  return { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsDeployment", metadata };
}

it("ClusterCache uses the listed objects after a restore of etcd, also if they are older than the cached ones", async () => {
  const clock = new FakeClock();
  let stored = demo("700", 7);
  let watch = new PassThrough();
  const client = {
    clock,
    serves: async () => false,
    listAll: async <T>(kind: string, { keep }: ListOptions & { keep: (object: KubernetesObject) => T }) => ({
      items: kind === stored.kind ? [keep(stored)] : [],
      resourceVersion: stored.metadata.resourceVersion ?? "",
    }),
    openWatch: async (kind: string) => {
      const stream = new PassThrough();
      if (kind === stored.kind) watch = stream;
      return stream;
    },
  } as unknown as ClusterClient;
  const view = new ClusterCache({ client, namespaces: [], clock, observer: {} });
  await view.start();
  const generation = () => view.get("TtsDeployment", "ns/demo")?.metadata.generation;
  expect(generation()).toBe(7);
  view.written(demo("701", 7));

  stored = demo("600", 6);
  const expired = { kind: "Status", status: "Failure", code: 410, reason: "Expired", message: "too old" };
  watch.write(`${JSON.stringify({ type: "ERROR", object: expired })}\n`);
  await eventually("the cache has the listed object", () =>
    clock.advance(1_000).then(() => generation() === 6),
  );
  await view.stop();
});
