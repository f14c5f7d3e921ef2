import { PassThrough } from "node:stream";
import { afterEach, expect, it } from "vitest";
import { systemClock } from "../../../lib/clock.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { Secrets } from "../../../operator/cluster/secrets.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { eventuallyPasses } from "../../support/eventually.ts";

const ref = { apiVersion: "v1", kind: "Secret", namespace: "ns", name: "license" };
const versionOf = (secret: KubernetesObject | undefined) => secret?.metadata.resourceVersion;
const secret = (resourceVersion: string): KubernetesObject => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "license", namespace: "ns", uid: "1", resourceVersion },
});

/**
 * An API server whose responses and watch events the test controls. A late response reports nothing before
 * its end.
 */
function opened({ late = false } = {}) {
  const end = Promise.withResolvers<void>();
  const watch = new PassThrough();
  const reads: PromiseWithResolvers<KubernetesObject | undefined>[] = [];
  const client = {
    clock: systemClock,
    openWatch: async (_kind: string, { fieldSelector }: { fieldSelector?: string }) =>
      fieldSelector === undefined ? new PassThrough() : watch,
    get: (_ref: unknown, options?: { metadataOnly?: boolean }) => {
      if (options?.metadataOnly) return (late ? end.promise : Promise.resolve()).then(() => secret("1"));
      reads.push(Promise.withResolvers());
      return reads.at(-1)?.promise;
    },
  };
  const secrets = new Secrets({
    client: client as unknown as ClusterClient,
    namespaces: ["ns"],
    observer: {},
  });
  const told: string[] = [];
  secrets.onChange((key, found) => told.push(`${key} ${versionOf(found) ?? "gone"}`));
  secrets.follow("ns/demo", [ref]);
  closing.push(() => {
    end.resolve();
    return secrets.stop();
  });
  return {
    secrets,
    watch,
    told,
    reads,
    tell: (type: string, version: string) =>
      watch.write(`${JSON.stringify({ type, object: secret(version) })}\n`),
    /** Reads a Secret, and responds with this version. */
    async read(version: string) {
      const finding = secrets.read(ref, "version", versionOf);
      reads.at(-1)?.resolve(secret(version));
      return (await finding).fact;
    },
  };
}

const closing: (() => Promise<void>)[] = [];
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

it("is read once, and again when the watch reports another version", async () => {
  const { read, reads, told, tell } = opened();
  await eventuallyPasses(async () => {
    await read("1");
    const asked = reads.length;
    await read("1");
    expect(reads).toHaveLength(asked);
  });
  const asked = reads.length;
  tell("MODIFIED", "2");
  await eventuallyPasses(() => expect(told).toEqual(["ns/license 2"]));
  expect(await read("2")).toBe("2");
  expect(await read("2")).toBe("2");
  expect(reads).toHaveLength(asked + 1);
  expect(told).toHaveLength(1);
});

it("that changes during its first read is reported again", async () => {
  const { secrets, reads, told, tell } = opened();
  const finding = secrets.read(ref, "version", versionOf);
  tell("MODIFIED", "2");
  await eventuallyPasses(() => expect(told).toContain("ns/license 2"));
  reads.at(-1)?.resolve(secret("1"));
  expect((await finding).fact).toBe("1");
  const again = secrets.read(ref, "version", versionOf);
  reads.at(-1)?.resolve(secret("2"));
  expect((await again).fact).toBe("2");
});

it("a changed Secret is reported to all followers when one of them reads it before the watch event", async () => {
  const { read, told } = opened({ late: true });
  await read("1");
  expect(told).toEqual([]);
  await read("2");
  expect(told).toEqual(["ns/license 2"]);
});

it("that was deleted is reported, and not read until it exists again", async () => {
  const { secrets, read, reads, told, tell } = opened();
  await read("1");
  tell("DELETED", "3");
  await eventuallyPasses(() => expect(told).toContain("ns/license gone"));
  const gone = secrets.read(ref, "version", versionOf);
  reads.at(-1)?.resolve(undefined);
  expect((await gone).fact).toBeUndefined();
  const asked = reads.length;
  expect((await secrets.read(ref, "version", versionOf)).fact).toBeUndefined();
  expect(reads).toHaveLength(asked);
});

it("without followers is forgotten, and its watch ends", async () => {
  const { secrets, read, reads, watch, told, tell } = opened();
  await read("1");
  tell("MODIFIED", "2");
  await eventuallyPasses(() => expect(told).toEqual(["ns/license 2"]));
  secrets.follow("ns/demo", []);
  await eventuallyPasses(() => expect(watch.destroyed).toBe(true));
  expect(secrets.followersOf("ns/license")).toEqual([]);
  const asked = reads.length;
  await read("1");
  expect(reads).toHaveLength(asked + 1);
});

it("of the operator that was written before a watch reported it is reported again when the watch restarts", async () => {
  const streams: PassThrough[] = [];
  const openWatch = async () => {
    const stream = new PassThrough();
    streams.push(stream);
    return stream;
  };
  const client = { clock: systemClock, openWatch } as unknown as ClusterClient;
  const secrets = new Secrets({ client, namespaces: ["ns"], observer: {} });
  closing.push(() => secrets.stop());
  const told: string[] = [];
  secrets.onChange((key, found) => told.push(`${key} ${versionOf(found) ?? "gone"}`));
  secrets.start();
  await eventuallyPasses(() => expect(streams).toHaveLength(1));
  secrets.keep(secret("1"), "applied", "digest");
  expect(told).toEqual([]);
  streams[0]?.end();
  await eventuallyPasses(() => expect(told).toContain("ns/license gone"));
});
