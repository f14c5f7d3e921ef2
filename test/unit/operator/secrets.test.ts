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
 * Creates a cache of Secrets for a simulated API server. The test controls its responses and watch events.
 *
 * @param late whether the first list of the watch waits until the test ends
 */
function openSecrets({ late = false } = {}) {
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
  const reported: string[] = [];
  secrets.onChange((key, changed) => reported.push(`${key} ${versionOf(changed) ?? "gone"}`));
  secrets.follow("ns/demo", [ref]);
  closing.push(() => {
    end.resolve();
    return secrets.stop();
  });
  return {
    secrets,
    watch,
    reported,
    reads,
    sendEvent: (type: string, version: string) =>
      watch.write(`${JSON.stringify({ type, object: secret(version) })}\n`),
    /** Reads the Secret. The API server responds with this version. */
    async read(version: string) {
      const reading = secrets.read(ref, "version", versionOf);
      reads.at(-1)?.resolve(secret(version));
      return (await reading).fact;
    },
  };
}

const closing: (() => Promise<void>)[] = [];
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

it("a Secret is read once, and again after the watch reports another version", async () => {
  const { read, reads, reported, sendEvent } = openSecrets();
  await eventuallyPasses(async () => {
    await read("1");
    const readsBefore = reads.length;
    await read("1");
    expect(reads).toHaveLength(readsBefore);
  });
  const readsBefore = reads.length;
  sendEvent("MODIFIED", "2");
  await eventuallyPasses(() => expect(reported).toEqual(["ns/license 2"]));
  expect(await read("2")).toBe("2");
  expect(await read("2")).toBe("2");
  expect(reads).toHaveLength(readsBefore + 1);
  expect(reported).toHaveLength(1);
});

it("a Secret that changes during its first read is reported, and read again", async () => {
  const { secrets, reads, reported, sendEvent } = openSecrets();
  const reading = secrets.read(ref, "version", versionOf);
  sendEvent("MODIFIED", "2");
  await eventuallyPasses(() => expect(reported).toContain("ns/license 2"));
  reads.at(-1)?.resolve(secret("1"));
  expect((await reading).fact).toBe("1");
  const again = secrets.read(ref, "version", versionOf);
  reads.at(-1)?.resolve(secret("2"));
  expect((await again).fact).toBe("2");
});

it("a changed Secret is reported to all followers when one of them reads it before the watch event", async () => {
  const { read, reported } = openSecrets({ late: true });
  await read("1");
  expect(reported).toEqual([]);
  await read("2");
  expect(reported).toEqual(["ns/license 2"]);
});

it("a deleted Secret is reported, and not read again until it exists", async () => {
  const { secrets, read, reads, reported, sendEvent } = openSecrets();
  await read("1");
  sendEvent("DELETED", "3");
  await eventuallyPasses(() => expect(reported).toContain("ns/license gone"));
  const reading = secrets.read(ref, "version", versionOf);
  reads.at(-1)?.resolve(undefined);
  expect((await reading).fact).toBeUndefined();
  const readsBefore = reads.length;
  expect((await secrets.read(ref, "version", versionOf)).fact).toBeUndefined();
  expect(reads).toHaveLength(readsBefore);
});

it("a Secret without followers is removed from the cache, and its watch ends", async () => {
  const { secrets, read, reads, watch, reported, sendEvent } = openSecrets();
  await read("1");
  sendEvent("MODIFIED", "2");
  await eventuallyPasses(() => expect(reported).toEqual(["ns/license 2"]));
  secrets.follow("ns/demo", []);
  await eventuallyPasses(() => expect(watch.destroyed).toBe(true));
  expect(secrets.followersOf("ns/license")).toEqual([]);
  const readsBefore = reads.length;
  await read("1");
  expect(reads).toHaveLength(readsBefore + 1);
});

it("a Secret that the operator wrote and the watch never reported is reported as gone when the watch restarts", async () => {
  const streams: PassThrough[] = [];
  const openWatch = async () => {
    const stream = new PassThrough();
    streams.push(stream);
    return stream;
  };
  const client = { clock: systemClock, openWatch } as unknown as ClusterClient;
  const secrets = new Secrets({ client, namespaces: ["ns"], observer: {} });
  closing.push(() => secrets.stop());
  const reported: string[] = [];
  secrets.onChange((key, changed) => reported.push(`${key} ${versionOf(changed) ?? "gone"}`));
  secrets.start();
  await eventuallyPasses(() => expect(streams).toHaveLength(1));
  secrets.keep(secret("1"), "applied", "digest");
  expect(reported).toEqual([]);
  streams[0]?.end();
  await eventuallyPasses(() => expect(reported).toContain("ns/license gone"));
});
