import { expect, test } from "vitest";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { Manifest } from "../../../operator/manifest.ts";
import type { Secrets } from "../../../operator/secrets.ts";
import type { ClusterView } from "../../../operator/view.ts";
import { Writer } from "../../../operator/write.ts";
import { settle } from "../../support/fake-clock.ts";

const owner: Manifest = {
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsDeployment",
  metadata: { name: "demo", namespace: "ns", uid: "1" },
};

function child(kind: string, name: string): Manifest {
  return { apiVersion: "v1", kind, metadata: { name, namespace: "ns" } };
}

const desired = [
  child("ConfigMap", "routing"),
  child("TtsModelPool", "mist"),
  child("TtsModelPool", "arcana"),
  child("Deployment", "api"),
];

/** Nothing is there yet; each apply waits until the test answers it. */
function cluster() {
  const open = new Map<string, PromiseWithResolvers<Manifest>>();
  const client = {
    get: async ({ name }: Manifest["metadata"]) => (name === "demo" ? owner : undefined),
    apply: ({ metadata }: Manifest) => {
      const answer = Promise.withResolvers<Manifest>();
      open.set(metadata.name, answer);
      return answer.promise;
    },
  } as unknown as ClusterClient;
  const view = { get: () => undefined, written: () => undefined } as unknown as ClusterView;
  const writer = new Writer(client, view, {} as Secrets);
  const answer = async (name: string) => {
    open.get(name)?.resolve(child("Any", name));
    await settle();
  };
  return { writer, open, answer };
}

test("pools and the API's Deployment are written at once, when what stands before them is", async () => {
  const { writer, open, answer } = cluster();
  const written = writer.ensureAll(owner, desired);
  await settle();
  expect([...open.keys()]).toEqual(["routing"]);
  await answer("routing");
  expect([...open.keys()]).toEqual(["routing", "mist", "arcana", "api"]);
  for (const name of ["api", "arcana", "mist"]) await answer(name);
  const { applied, failure } = await written;
  expect(applied.map(({ metadata }) => metadata.name)).toEqual(["routing", "mist", "arcana", "api"]);
  expect(failure).toBeUndefined();
});

test("a write that fails ends the pass only when those beside it have ended", async () => {
  const { writer, open, answer } = cluster();
  let result: Awaited<ReturnType<Writer["ensureAll"]>> | undefined;
  void writer.ensureAll(owner, desired).then((told) => {
    result = told;
  });
  await settle();
  await answer("routing");
  const refusal = new ApiError({ status: 500, reason: "InternalError", message: "no" });
  open.get("mist")?.reject(refusal);
  await answer("arcana");
  expect(result).toBeUndefined();
  await answer("api");
  expect(result?.failure).toBe(refusal);
  expect(result?.applied.map(({ metadata }) => metadata.name)).toEqual(["routing", "arcana", "api"]);
});
