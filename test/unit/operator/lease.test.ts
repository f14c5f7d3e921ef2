import { describe, expect, test } from "vitest";
import type { Clock } from "../../../lib/clock.ts";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import { LeaderElection } from "../../../operator/cluster/lease.ts";
import { microTime } from "../../../operator/cluster/micro-time.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { FakeClock } from "../../support/fake-clock.ts";

/** Stores a Lease like the API server: a write must contain the resource version that it changes. */
function leaseStore() {
  let version = 0;
  const store = {
    lease: undefined as KubernetesObject | undefined,
    /** The identities of disconnected candidates. Their requests never complete. */
    cutOff: new Set<string>(),
    writes: 0,
    put(lease: KubernetesObject): KubernetesObject {
      version += 1;
      store.writes += 1;
      store.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(version) } };
      return store.lease;
    },
    client(identity: string) {
      const reach = (signal: AbortSignal | undefined) =>
        new Promise<void>((resolve, reject) => {
          if (!store.cutOff.has(identity)) resolve();
          signal?.addEventListener("abort", () => reject(new Error("given up")), { once: true });
        });
      const conflict = () => new ApiError({ status: 409, reason: "Conflict", message: "changed meanwhile" });
      return {
        async get(_ref: unknown, options?: { signal?: AbortSignal | undefined }) {
          await reach(options?.signal);
          return store.lease;
        },
        async create(lease: KubernetesObject, options?: { signal?: AbortSignal }) {
          await reach(options?.signal);
          if (store.lease !== undefined) throw conflict();
          return store.put(lease);
        },
        async replace(lease: KubernetesObject, options?: { signal?: AbortSignal }) {
          await reach(options?.signal);
          if (store.lease?.metadata.resourceVersion !== lease.metadata.resourceVersion) throw conflict();
          return store.put(lease);
        },
      };
    },
  };
  return store;
}

function candidate(store: ReturnType<typeof leaseStore>, clock: Clock, identity: string) {
  const history: string[] = [];
  const election = new LeaderElection({
    client: store.client(identity),
    namespace: "tts",
    name: "tts-operator",
    identity,
    clock,
    random: () => 0.99,
    onLeading: () => history.push("leading"),
    onLost: (reason) => history.push(reason),
  });
  return { election, history };
}

function pair() {
  const clock = new FakeClock();
  const store = leaseStore();
  return { clock, store, one: candidate(store, clock, "one"), two: candidate(store, clock, "two") };
}

/** Returns one candidate that has started. */
function alone() {
  const clock = new FakeClock();
  const store = leaseStore();
  const one = candidate(store, clock, "one");
  one.election.start();
  return { clock, store, one };
}

describe("a leader election", () => {
  test("selects one of two processes, which keeps the lease", async () => {
    const { clock, one, two } = pair();
    one.election.start();
    two.election.start();
    await clock.advance(10 * 60_000);
    expect([one.election.leading, two.election.leading]).toEqual([true, false]);
    expect(one.history).toEqual(["leading"]);
  });

  test("selects the other process within 20 s after the holder is disconnected, and never both", async () => {
    const { clock, store, one, two } = pair();
    one.election.start();
    await clock.advance(1);
    two.election.start();
    await clock.advance(60_700);
    store.cutOff.add("one");
    let neverBoth = true;
    for (let ms = 0; ms < 20_000 && !two.election.leading; ms += 100) {
      await clock.advance(100);
      neverBoth &&= !(one.election.leading && two.election.leading);
    }
    expect(two.election.leading).toBe(true);
    expect(neverBoth).toBe(true);
    expect(one.history).toEqual(["leading", "the Lease could not be renewed for 10000 ms"]);
  });

  test.each([-5, 5])("is not affected by wall clocks that differ by %i hours", async (hours) => {
    const clock = new FakeClock();
    const store = leaseStore();
    const shiftedClock: Clock = {
      nowMs: () => clock.nowMs() + hours * 3_600_000,
      monotonicMs: () => clock.monotonicMs(),
      after: (delayMs, callback) => clock.after(delayMs, callback),
    };
    const [one, two] = [candidate(store, clock, "one"), candidate(store, shiftedClock, "two")];
    one.election.start();
    await clock.advance(1);
    two.election.start();
    await clock.advance(5 * 60_000);
    expect([one.election.leading, two.election.leading]).toEqual([true, false]);
    store.cutOff.add("one");
    await clock.advance(20_000);
    expect([one.election.leading, two.election.leading]).toEqual([false, true]);
  });

  test("selects the other process at its next attempt after the holder stops", async () => {
    const { clock, one, two } = pair();
    one.election.start();
    await clock.advance(1);
    two.election.start();
    await clock.advance(30_000);
    await one.election.stop();
    await clock.advance(2_400);
    expect(two.election.leading).toBe(true);
    expect(one.history).toEqual(["leading"]);
  });

  test("measures the age of the lease with its own clock, not with the times in the lease", async () => {
    const clock = new FakeClock();
    const store = leaseStore();
    store.put({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "tts-operator", namespace: "tts" },
      spec: {
        holderIdentity: "past",
        leaseDurationSeconds: 15,
        renewTime: microTime(0),
        acquireTime: microTime(0),
      },
    });
    const one = candidate(store, clock, "one");
    one.election.start();
    await clock.advance(14_900);
    expect(one.election.leading).toBe(false);
    await clock.advance(200);
    expect(one.election.leading).toBe(true);
  });

  test("counts transitions, and keeps the acquire time when it renews the lease", async () => {
    const { clock, store, one } = alone();
    const acquireTime = microTime(clock.nowMs());
    await clock.advance(60_000);
    expect(store.lease?.spec).toMatchObject({ acquireTime, leaseTransitions: 0 });
    await one.election.stop();
    candidate(store, clock, "two").election.start();
    await clock.advance(3_000);
    expect(store.lease?.spec).toMatchObject({ holderIdentity: "two", leaseTransitions: 1 });
    expect(store.lease?.spec).not.toMatchObject({ acquireTime });
  });

  test("steps down at the next renewal if another process holds the lease", async () => {
    const { clock, store, one } = alone();
    await clock.advance(1);
    const lease = store.lease as KubernetesObject;
    store.put({ ...lease, spec: { ...(lease.spec as object), holderIdentity: "thief" } });
    await clock.advance(2_100);
    expect(one.election.leading).toBe(false);
    expect(one.history).toEqual(["leading", "another process holds the Lease: thief"]);
  });

  test("stays leader when a user adds a label to the lease", async () => {
    const { clock, store, one } = alone();
    await clock.advance(1);
    const lease = store.lease as KubernetesObject;
    store.put({ ...lease, metadata: { ...lease.metadata, labels: { team: "speech" } } });
    await clock.advance(30_000);
    expect(one.history).toEqual(["leading"]);
    expect(store.lease?.metadata.labels).toEqual({ team: "speech" });
  });

  test("leads again after an interruption", async () => {
    const { clock, store, one } = alone();
    await clock.advance(1);
    store.cutOff.add("one");
    await clock.advance(15_000);
    expect(one.election.leading).toBe(false);
    store.cutOff.clear();
    await clock.advance(15_000);
    expect(one.history).toEqual(["leading", "the Lease could not be renewed for 10000 ms", "leading"]);
  });
});

test("microTime writes exactly six decimals, as the API server requires", () => {
  expect(microTime(Date.UTC(2030, 4, 6, 7, 8, 9, 10))).toBe("2030-05-06T07:08:09.010000Z");
});
