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

/** Simulates a cluster without children. Each apply waits for the test. */
function cluster() {
  const open = new Map<string, PromiseWithResolvers<KubernetesObject>>();
  const client = {
    get: async ({ name }: KubernetesObject["metadata"]) => (name === "demo" ? owner : undefined),
    apply: ({ metadata }: KubernetesObject) => {
      const response = Promise.withResolvers<KubernetesObject>();
      open.set(metadata.name, response);
      return response.promise;
    },
  } as unknown as ClusterClient;
  const view = { get: () => undefined, written: () => undefined } as unknown as ClusterCache;
  const writer = new Writer(client, view, {} as Secrets, new FakeClock());
  const respond = async (name: string) => {
    open.get(name)?.resolve(child("Any", name));
    await settle();
  };
  return { writer, open, respond };
}

test("ensureAll applies pools and the API Deployment concurrently after the earlier children", async () => {
  const { writer, open, respond } = cluster();
  const written = writer.ensureAll(owner, desired);
  await settle();
  expect([...open.keys()]).toEqual(["routing"]);
  await respond("routing");
  expect([...open.keys()]).toEqual(["routing", "mist", "arcana", "api"]);
  for (const name of ["api", "arcana", "mist"]) await respond(name);
  const { applied, failure } = await written;
  expect(applied.map(({ metadata }) => metadata.name)).toEqual(["routing", "mist", "arcana", "api"]);
  expect(failure).toBeUndefined();
});

test("ensureAll returns a failure after all concurrent applies have ended", async () => {
  const { writer, open, respond } = cluster();
  let result: Awaited<ReturnType<Writer["ensureAll"]>> | undefined;
  void writer.ensureAll(owner, desired).then((ensured) => {
    result = ensured;
  });
  await settle();
  await respond("routing");
  const refusal = new ApiError({ status: 500, reason: "InternalError", message: "no" });
  open.get("mist")?.reject(refusal);
  await respond("arcana");
  expect(result).toBeUndefined();
  await respond("api");
  expect(result?.failure).toBe(refusal);
  expect(result?.applied.map(({ metadata }) => metadata.name)).toEqual(["routing", "arcana", "api"]);
});

const optional = [child("Ingress", "api"), child("NetworkPolicy", "model"), ...desired];

test("ensureAll continues after a rejected child, and reports every rejection", async () => {
  const { writer, open, respond } = cluster();
  const written = writer.ensureAll(owner, optional);
  await settle();
  open.get("api")?.reject(new ApiError({ status: 403, reason: "Forbidden", message: "no such host" }));
  await settle();
  open.get("model")?.reject(new ApiError({ status: 500, reason: "InternalError", message: "boom" }));
  await settle();
  for (const name of ["routing", "mist", "arcana", "api"]) await respond(name);
  const { applied, problems, complete, failure } = await written;
  expect(applied.map(({ metadata }) => metadata.name)).toEqual(["routing", "mist", "arcana", "api"]);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("no such host"),
    expect.stringContaining("boom"),
  ]);
  expect(complete).toBe(true);
  expect(String(failure)).toContain("no such host");
});

test("ensureAll applies no Deployment after its prerequisites were rejected, but applies other children", async () => {
  const { writer, open, respond } = cluster();
  const written = writer.ensureAll(owner, [...desired, child("PodMonitor", "mist")]);
  await settle();
  open.get("routing")?.reject(new ApiError({ status: 422, reason: "Invalid", message: "no" }));
  await settle();
  expect([...open.keys()]).toEqual(["routing", "mist"]);
  await respond("mist");
  const { applied } = await written;
  expect(applied.map(({ kind }) => kind)).toEqual(["Any"]);
});

test("ensureAll applies no further child if the API server does not respond", async () => {
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
    const problemWith = (port: number) =>
      refusal(`failed calling webhook "w": read tcp 10.0.0.5:${port}->10.0.0.9:443: connection reset`);
    expect(problemWith(41_234)).toEqual(problemWith(50_001));
    expect(problemWith(41_234).message).toContain("10.0.0.9:443");
  });

  test("contains each message once, with the reason of the stalled problem", () => {
    const retried = {
      reason: "ApplyFailed",
      message: "Service api was not written.",
      stalled: false,
    } as const;
    const stalled = { reason: "NameTaken", message: "Role api is taken.", stalled: true } as const;
    expect(combineProblems([retried, undefined, stalled, retried])).toEqual({
      reason: "NameTaken",
      message: "Role api is taken. Service api was not written.",
      stalled: true,
    });
    expect(combineProblems([undefined])).toBeUndefined();
  });
});
