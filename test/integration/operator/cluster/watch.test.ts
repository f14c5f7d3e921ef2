/**
 * Tests the recovery of a watch from each kind of fault. A proxy in front of a real API server injects the
 * faults. After each fault, the cache must equal the cluster.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { ApiError } from "../../../../operator/cluster/api-error.ts";
import { ClusterClient } from "../../../../operator/cluster/client.ts";
import { Reflector, type ReflectorOptions, watchOne } from "../../../../operator/cluster/reflector.ts";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import { adminClient, freshNamespace } from "../../../support/cluster/cluster-namespace.ts";
import { eventually, eventuallyPasses } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { type Fault, FaultProxy, type ProxiedRequest } from "../../../support/operator/fault-proxy.ts";

let admin: ClusterClient;
let namespace: string;
let proxy: FaultProxy;
let client: ClusterClient;
let reflector: Reflector;
/** The last object that the listener received for each key, or undefined after a deletion. */
let notified: Map<string, KubernetesObject | undefined>;
let notifications: number;

beforeAll(async () => {
  admin = await adminClient(inject("controlPlane"));
});

afterAll(() => admin.close());

beforeEach(async () => {
  namespace = await freshNamespace(admin, "watch");
  proxy = await FaultProxy.start(inject("controlPlane"));
  client = new ClusterClient(proxy.connection(), { timeoutMs: 60_000, attempts: 1 });
  notified = new Map();
  notifications = 0;
});

afterEach(async () => {
  await reflector.stop();
  client.close();
  await proxy[Symbol.asyncDispose]();
});

function follow(options: ReflectorOptions = {}): Reflector {
  reflector = new Reflector(client, "ConfigMap", {
    namespace,
    labelSelector: "app=tts",
    backoff: { baseMs: 10, capMs: 100, jitter: 0.5 },
    ...options,
  });
  return listen();
}

function listen(): Reflector {
  reflector.onChange((key, entry) => {
    notifications += 1;
    notified.set(key, entry?.object);
  });
  return reflector.start();
}

async function put(name: string, value: string): Promise<KubernetesObject> {
  const metadata = { name, namespace, labels: { app: "tts" } };
  return admin.apply({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { value } });
}

function remove(name: string): Promise<boolean> {
  return admin.remove({ apiVersion: "v1", kind: "ConfigMap", namespace, name });
}

async function clusterValues(): Promise<Record<string, unknown>> {
  return valuesOf(await admin.list("ConfigMap", { namespace, labelSelector: "app=tts" }));
}

function cachedObjects(): KubernetesObject[] {
  return [...reflector.keys()].map((key) => reflector.get(key)).filter((object) => object !== undefined);
}

function valuesOf(objects: Iterable<KubernetesObject>): Record<string, unknown> {
  return Object.fromEntries(
    [...objects].map((object) => [object.metadata.name, (object.data as { value: string }).value]),
  );
}

/** Waits until the cache and the notifications match the cluster. */
async function expectInSync(): Promise<void> {
  const cluster = await clusterValues();
  await eventuallyPasses(() => {
    expect(valuesOf(cachedObjects())).toEqual(cluster);
    expect(valuesOf([...notified.values()].filter((object) => object !== undefined))).toEqual(cluster);
  });
}

async function untilWatching(): Promise<void> {
  await reflector.synced();
  await eventuallyPasses(() => expect(proxy.openWatches).toBe(1));
}

/** Starts a reflector, and waits until its watch is open. */
async function following(options: ReflectorOptions = {}): Promise<void> {
  follow(options);
  await untilWatching();
}

/** Adds one object, changes one object and deletes one object. */
async function change(round: string): Promise<void> {
  await Promise.all([put(`new-${round}`, "1"), put("changed", round), put("gone", round)]);
  await remove("gone");
}

async function expectChangesNotified(): Promise<void> {
  await change("one");
  await expectInSync();
}

describe("a reflector on a healthy connection", () => {
  test("lists in pages, and then reports new, changed and deleted objects without another list", async () => {
    await Promise.all(["a", "b", "c", "d", "e"].map((name) => put(name, "1")));
    await following({ pageSize: 2 });
    expect(proxy.count("list")).toBe(3);
    expect(notified.size).toBe(5);
    await expectChangesNotified();
    expect(notified.get(`${namespace}/gone`)).toBeUndefined();
    expect(proxy.count("list")).toBe(3);
  });

  test("removes managed fields, and keeps them with keepManagedFields", async () => {
    await put("a", "1");
    await follow().synced();
    expect(reflector.get(`${namespace}/a`)?.metadata).not.toHaveProperty("managedFields");
    await reflector.stop();
    await follow({ keepManagedFields: true }).synced();
    expect(reflector.get(`${namespace}/a`)?.metadata.managedFields?.[0]?.manager).toBe("tts-operator");
  });

  test("continues when the API server ends the watch at its time limit", async () => {
    await following({ watchSeconds: 1 });
    await eventuallyPasses(() => expect(proxy.count("watch")).toBeGreaterThan(1));
    await expectChangesNotified();
    expect(proxy.count("list")).toBe(1);
  });

  test("reports nothing after it was stopped, and leaves no watch open", async () => {
    await following();
    await reflector.stop();
    await eventuallyPasses(() => expect(proxy.openWatches).toBe(0));
    const before = notifications;
    await change("one");
    expect(notifications).toBe(before);
  });

  test("continues when a listener throws", async () => {
    const failed: string[] = [];
    follow({ observer: { listenerFailed: (_kind, key) => failed.push(key) } });
    reflector.onChange(() => {
      throw new Error("the listener failed");
    });
    await untilWatching();
    await expectChangesNotified();
    expect(failed).toContain(`${namespace}/changed`);
  });
});

describe("a reflector loses no update", () => {
  test("when the connection is closed within a line: the watch continues without another list", async () => {
    await following();
    await put("changed", "before");
    await expectInSync();
    proxy.cutWatches();
    await expectChangesNotified();
    expect(proxy.count("list")).toBe(1);
  });

  test("when the connection is closed repeatedly while objects change", async () => {
    await following();
    for (let round = 0; round < 10; round += 1) {
      await eventuallyPasses(() => expect(proxy.count("watch")).toBeGreaterThan(round));
      await untilWatching();
      await change(`${round}-seen`);
      proxy.cutWatches();
      await change(`${round}-missed`);
    }
    await expectInSync();
  });

  test("when a watch stalls: a new watch replaces it", async () => {
    await following({ idleTimeoutMs: 300 });
    proxy.stallWatches();
    await expectChangesNotified();
  });

  test("when the API server does not respond to the request for a watch", async () => {
    let hung = 0;
    proxy.rule = ({ watch }) => (watch && hung++ < 1 ? { kind: "hang" } : undefined);
    client.close();
    client = new ClusterClient(proxy.connection(), { timeoutMs: 2_000, attempts: 1 });
    follow();
    await reflector.synced();
    await expectChangesNotified();
    expect(hung).toBeGreaterThan(1);
  });

  test("when the API server no longer has the version (410): it lists again and reports deleted objects", async () => {
    await put("vanishes", "1");
    await following();
    let rejected = 0;
    proxy.rule = ({ watch }) => (watch && rejected++ < 2 ? { kind: "answer", status: 410 } : undefined);
    proxy.cutWatches();
    await remove("vanishes");
    await expectChangesNotified();
    expect(notified.has(`${namespace}/vanishes`)).toBe(true);
    expect(notified.get(`${namespace}/vanishes`)).toBeUndefined();
    await eventuallyPasses(() => expect(proxy.openWatches).toBe(1));
    expect(proxy.count("list")).toBe(3);
  });

  test("when a 410 is an event of the watch", async () => {
    await following();
    proxy.stallWatches();
    await change("one");
    const status = { kind: "Status", status: "Failure", reason: "Expired", code: 410, message: "too old" };
    proxy.sayOnWatches(JSON.stringify({ type: "ERROR", object: status }));
    await expectInSync();
    expect(proxy.count("list")).toBe(2);
  });

  test("when the pages of a list expire", async () => {
    await Promise.all(["a", "b", "c", "d", "e"].map((name) => put(name, "1")));
    let expired = 0;
    const halfway = ({ query }: ProxiedRequest) => query.has("continue") && expired++ < 1;
    proxy.rule = (request) => (halfway(request) ? { kind: "answer", status: 410 } : undefined);
    follow({ pageSize: 2 });
    await expectInSync();
    expect(expired).toBe(1);
  });

  test("when the API server has only older versions, for example after the restore of a backup", async () => {
    await following();
    const details = {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    };
    const status = { kind: "Status", status: "Failure", reason: "Timeout", code: 504, details };
    proxy.rule = ({ watch, query }) =>
      watch && proxy.count("list") < 2 && query.has("resourceVersion")
        ? { kind: "answer", status: 504, body: status }
        : undefined;
    proxy.cutWatches();
    await expectChangesNotified();
    expect(proxy.count("list")).toBe(2);
  });

  test.each([429, 500, 503])(
    "when the API server responds %i to several watches: the pauses between retries grow",
    async (status) => {
      const pauses: number[] = [];
      const interrupted = (_kind: string, error: unknown, retryMs: number) => {
        if (error instanceof ApiError && error.status === status) pauses.push(retryMs);
      };
      follow({ random: () => 0.5, observer: { interrupted } });
      await untilWatching();
      let rejected = 0;
      proxy.rule = ({ watch }) => (watch && rejected++ < 6 ? { kind: "answer", status } : undefined);
      proxy.cutWatches();
      await change("one");
      await expectInSync();
      expect(rejected).toBe(7);
      // The first failure was the interrupted watch, with a pause of 10 ms.
      expect(pauses).toEqual([20, 40, 80, 100, 100, 100]);
    },
  );

  test("when the API server sends Retry-After", async () => {
    const clock = new FakeClock();
    await following({ clock, random: () => 0.5 });
    let rejected = 0;
    const pauseOf = (pauseMs: number) =>
      eventually(`a pause of ${pauseMs} ms`, () => clock.nextDueMs === clock.monotonicMs() + pauseMs);
    const busy = { kind: "answer", status: 429, headers: { "retry-after": "1" } } as const;
    proxy.rule = ({ watch }) => (watch && rejected++ < 1 ? busy : undefined);
    proxy.cutWatches();
    await pauseOf(10);
    await clock.advance(10);
    await pauseOf(1_020);
    expect(rejected).toBe(1);
    await clock.advance(1_020);
    await eventuallyPasses(() => expect(rejected).toBe(2));
    await expectChangesNotified();
  });

  test("when the first lists fail", async () => {
    let rejected = 0;
    proxy.rule = ({ watch }) => (!watch && rejected++ < 3 ? { kind: "answer", status: 500 } : undefined);
    await put("a", "1");
    follow();
    await expectInSync();
    expect(proxy.count("list")).toBe(4);
  });

  test("when the token has expired: it is read again", async () => {
    await following();
    proxy.rule = ({ watch }) =>
      watch && proxy.refreshes === 0 ? { kind: "answer", status: 401 } : undefined;
    proxy.cutWatches();
    await expectChangesNotified();
    expect(proxy.refreshes).toBe(1);
  });

  test("when a line cannot be parsed: the event is requested again", async () => {
    let broken = 0;
    const spoil = (line: string) =>
      line.includes('"changed"') && broken++ < 2 ? [line.slice(0, 40)] : [line];
    proxy.rule = ({ watch }) => (watch ? { kind: "rewrite", line: spoil } : undefined);
    await following();
    await put("changed", "only once");
    await expectInSync();
    expect(broken).toBe(3);
    expect(proxy.count("list")).toBe(1);
  });

  test("when a line can never be parsed: the objects are listed again", async () => {
    const spoil = (line: string) => (line.includes('"changed"') ? ["{ no event"] : [line]);
    proxy.rule = ({ watch }) => (watch ? { kind: "rewrite", line: spoil } : undefined);
    await following();
    await put("changed", "only once");
    await expectInSync();
    expect(proxy.count("list")).toBe(2);
  });

  test("when events are repeated late: an old state never replaces a newer one", async () => {
    const sentLines: string[] = [];
    const repeat = (line: string) => {
      sentLines.push(line);
      return [line, ...sentLines];
    };
    proxy.rule = ({ watch }) => (watch ? { kind: "rewrite", line: repeat } : undefined);
    await following();
    await put("changed", "1");
    await put("changed", "2");
    await put("changed", "3");
    await remove("changed");
    await put("changed", "4");
    await expectInSync();
    await put("last", "1");
    await expectInSync();
    expect(notifications).toBe(6);
  });

  test("when faults of several kinds occur", async () => {
    await following({ idleTimeoutMs: 200 });
    const half = (line: string) => [line, line.slice(0, 20)];
    const faults: (Fault | undefined)[] = [
      { kind: "answer", status: 410 },
      { kind: "drop", when: "before" },
      { kind: "delay", ms: 30 },
      { kind: "rewrite", line: half },
      { kind: "answer", status: 429 },
      undefined,
    ];
    let turn = 0;
    proxy.rule = () => faults[turn++ % faults.length];
    for (let round = 0; turn < 60; round += 1) {
      await change(String(round));
      if (round % 2 === 0) proxy.cutWatches();
      else proxy.stallWatches();
    }
    // The faults end here: a list of many pages would never complete, because each attempt would have a
    // fault.
    proxy.rule = () => undefined;
    await expectInSync();
  });
});

describe("a watch of one Secret", () => {
  const ref = (name: string) => ({ apiVersion: "v1", kind: "Secret", namespace, name });
  const secret = (value: string) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "license", namespace },
    stringData: { license: value },
  });

  function followSecret(): Reflector {
    reflector = watchOne(client, ref("license"), { backoff: { baseMs: 10, capMs: 100, jitter: 0.5 } });
    return listen();
  }

  const versionInCluster = async () => (await admin.get(ref("license")))?.metadata.resourceVersion;
  async function expectSecretInSync(): Promise<void> {
    const version = await versionInCluster();
    const known = () => reflector.get(`${namespace}/license`)?.metadata.resourceVersion;
    await eventuallyPasses(() => expect(known()).toBe(version));
  }

  test("reports creation, change and deletion of the Secret, without its content and without a list", async () => {
    followSecret();
    await reflector.synced();
    expect(reflector.get(`${namespace}/license`)).toBeUndefined();
    await admin.apply(secret("one"));
    await expectSecretInSync();
    await admin.apply(secret("two"));
    await expectSecretInSync();
    for (const object of [...cachedObjects(), ...notified.values()])
      expect(object).not.toHaveProperty("data");
    await admin.remove(ref("license"));
    await expectSecretInSync();
    const listed = proxy.requests.filter(({ path, watch }) => path.endsWith("/secrets") && !watch);
    expect(listed).toEqual([]);
    expect(
      proxy.requests.every(
        ({ query, watch }) => !watch || query.get("fieldSelector") === "metadata.name=license",
      ),
    ).toBe(true);
  });

  test("reports the existing Secret, and no other Secret", async () => {
    await admin.apply(secret("one"));
    const other = secret("other");
    await admin.apply({ ...other, metadata: { ...other.metadata, name: "other" } });
    await followSecret().synced();
    expect(reflector.get(`${namespace}/license`)?.metadata.resourceVersion).toBe(await versionInCluster());
    await untilWatching();
    expect([...notified.keys()]).toEqual([`${namespace}/license`]);
    expect(notifications).toBe(1);
  });

  test("reports a deletion and a creation after an interruption, also if its version has expired", async () => {
    await admin.apply(secret("one"));
    followSecret();
    await untilWatching();
    let rejected = 0;
    proxy.rule = ({ watch }) => (watch && rejected++ < 3 ? { kind: "answer", status: 410 } : undefined);
    proxy.cutWatches();
    await admin.remove(ref("license"));
    await expectSecretInSync();
    expect(notified.get(`${namespace}/license`)).toBeUndefined();
    await admin.apply(secret("two"));
    await expectSecretInSync();
  });
});
