import { describe, expect, test } from "vitest";
import { combineProblems, problemOf } from "../../../operator/apply/refusal.ts";
import { Writer } from "../../../operator/apply/writer.ts";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import type { ClusterCache } from "../../../operator/cluster/cache.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { Secrets } from "../../../operator/cluster/secrets.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

const owner: KubernetesObject = {
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsDeployment",
  metadata: { name: "demo", namespace: "ns", uid: "1" },
};

function child(kind: string, name: string): KubernetesObject {
  return { apiVersion: "v1", kind, metadata: { name, namespace: "ns" } };
}

const desired = [
  child("ConfigMap", "routing"),
  child("TtsModelPool", "mist"),
  child("TtsModelPool", "arcana"),
  child("Deployment", "api"),
];

/** A cluster without objects, in which each apply waits for the test. */
function cluster() {
  const open = new Map<string, PromiseWithResolvers<KubernetesObject>>();
  const client = {
    get: async ({ name }: KubernetesObject["metadata"]) => (name === "demo" ? owner : undefined),
    apply: ({ metadata }: KubernetesObject) => {
      const answer = Promise.withResolvers<KubernetesObject>();
      open.set(metadata.name, answer);
      return answer.promise;
    },
  } as unknown as ClusterClient;
  const view = { get: () => undefined, written: () => undefined } as unknown as ClusterCache;
  const writer = new Writer(client, view, {} as Secrets, new FakeClock());
  const answer = async (name: string) => {
    open.get(name)?.resolve(child("Any", name));
    await settle();
  };
  return { writer, open, answer };
}

test("pools and the API Deployment are written concurrently after the earlier children", async () => {
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

test("a failed write ends the reconcile when all concurrent writes have ended", async () => {
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

const optional = [child("Ingress", "api"), child("NetworkPolicy", "model"), ...desired];

test("a rejected child does not stop the others, and every rejection is reported", async () => {
  const { writer, open, answer } = cluster();
  const written = writer.ensureAll(owner, optional);
  await settle();
  open.get("api")?.reject(new ApiError({ status: 403, reason: "Forbidden", message: "no such host" }));
  await settle();
  open.get("model")?.reject(new ApiError({ status: 500, reason: "InternalError", message: "boom" }));
  await settle();
  for (const name of ["routing", "mist", "arcana", "api"]) await answer(name);
  const { applied, problems, complete, failure } = await written;
  expect(applied.map(({ metadata }) => metadata.name)).toEqual(["routing", "mist", "arcana", "api"]);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("no such host"),
    expect.stringContaining("boom"),
  ]);
  expect(complete).toBe(true);
  expect(String(failure)).toContain("no such host");
});

test("without their prerequisites no pods are started, and the other children are applied", async () => {
  const { writer, open, answer } = cluster();
  const written = writer.ensureAll(owner, [...desired, child("PodMonitor", "mist")]);
  await settle();
  open.get("routing")?.reject(new ApiError({ status: 422, reason: "Invalid", message: "no" }));
  await settle();
  expect([...open.keys()]).toEqual(["routing", "mist"]);
  await answer("mist");
  const { applied } = await written;
  expect(applied.map(({ kind }) => kind)).toEqual(["Any"]);
});

test("no further child is sent to an API server that does not respond", async () => {
  const { writer, open } = cluster();
  const written = writer.ensureAll(owner, optional);
  await settle();
  open.get("api")?.reject(new Error("ECONNREFUSED"));
  const { applied, complete } = await written;
  expect([...open.keys()]).toEqual(["api"]);
  expect({ applied, complete }).toEqual({ applied: [], complete: false });
});

describe("the problem of a reconcile", () => {
  const refusal = (message: string) =>
    problemOf(child("Ingress", "api"), new ApiError({ status: 500, reason: "InternalError", message }));

  test("does not change with the local port of a connection", () => {
    const of = (port: number) =>
      refusal(`failed calling webhook "w": read tcp 10.0.0.5:${port}->10.0.0.9:443: connection reset`);
    expect(of(41_234)).toEqual(of(50_001));
    expect(of(41_234).message).toContain("10.0.0.9:443");
  });

  test("contains every rejection once, with the reason that needs a person", () => {
    const later = { reason: "ApplyFailed", message: "Service api was not written.", stalled: false } as const;
    const grave = { reason: "NameTaken", message: "Role api is taken.", stalled: true } as const;
    expect(combineProblems([later, undefined, grave, later])).toEqual({
      reason: "NameTaken",
      message: "Role api is taken. Service api was not written.",
      stalled: true,
    });
    expect(combineProblems([undefined])).toBeUndefined();
  });
});
