/**
 * Tests the election and the event recorder on a real API server, which rejects malformed times and events.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { ClusterClient } from "../../../../operator/cluster/client.ts";
import { type EventDetails, EventRecorder } from "../../../../operator/cluster/events.ts";
import { LeaderElection } from "../../../../operator/cluster/lease.ts";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import { adminClient, freshNamespace } from "../../../support/cluster/cluster-namespace.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { FaultProxy } from "../../../support/operator/fault-proxy.ts";

let admin: ClusterClient;
let namespace: string;

beforeAll(async () => {
  admin = await adminClient(inject("controlPlane"));
});

afterAll(() => admin.close());

beforeEach(async () => {
  namespace = await freshNamespace(admin, "election");
});

describe("two operators on one lease", () => {
  let proxy: FaultProxy;
  let behindProxy: ClusterClient;
  let elections: LeaderElection[];
  let leaders: Set<string>;
  /** The largest number of simultaneous leaders. */
  let most: number;
  /**
   * Moves the clock in small steps while a leader must remain, so that a pause of the machine does not cost
   * it the lease.
   */
  let clock: FakeClock;

  beforeEach(async () => {
    proxy = await FaultProxy.start(inject("controlPlane"));
    behindProxy = new ClusterClient(proxy.connection());
    elections = [];
    leaders = new Set();
    most = 0;
    clock = new FakeClock();
  });

  afterEach(async () => {
    await Promise.all(elections.map((election) => election.stop()));
    behindProxy.close();
    await proxy[Symbol.asyncDispose]();
  });

  function run(client: ClusterClient, identity: string): LeaderElection {
    const election = new LeaderElection({
      client,
      namespace,
      name: "tts-operator",
      identity,
      onLeading: () => {
        leaders.add(identity);
        most = Math.max(most, leaders.size);
      },
      onLost: () => leaders.delete(identity),
      clock,
      leaseMs: 15_000,
      renewDeadlineMs: 10_000,
      retryMs: 500,
    }).start();
    elections.push(election);
    return election;
  }

  const soon = (what: string, look: () => boolean, stepMs = 100) => eventuallyOn(clock, what, look, stepMs);
  const leaderIs = (identity: string, stepMs?: number) =>
    soon(`${identity} leads alone`, () => [...leaders].join() === identity, stepMs);

  test("write valid times, and lead one after the other, never both", async () => {
    run(behindProxy, "one");
    await leaderIs("one");
    run(admin, "two");
    const lease = await admin.get({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      namespace,
      name: "tts-operator",
    });
    expect(lease?.spec).toMatchObject({
      holderIdentity: "one",
      renewTime: expect.stringMatching(/\.\d{6}Z$/),
    });
    proxy.rule = () => ({ kind: "hang" });
    await leaderIs("two", 1_000);
    proxy.rule = () => undefined;
    const asked = proxy.count("list");
    await soon("the old leader asks again", () => proxy.count("list") > asked + 3);
    expect([...leaders]).toEqual(["two"]);
    expect(most).toBe(1);
  });

  test("that start at the same time get one leader", async () => {
    for (const identity of ["a", "b", "c", "d"]) run(behindProxy, identity);
    await soon("one leads", () => leaders.size === 1);
    // candidates without the lease request it repeatedly
    const asked = proxy.count("list");
    await soon("they asked", () => proxy.count("list") > asked + 12);
    expect(most).toBe(1);
  });

  test("transfer the lease at once when the leader stops", async () => {
    const one = run(behindProxy, "one");
    await leaderIs("one");
    run(admin, "two");
    await soon("it was renewed", () => proxy.count("write") > 1);
    await one.stop();
    leaders.delete("one");
    await leaderIs("two");
  });

  test("keep their leader during rejections and lost connections that end before the deadline", async () => {
    run(behindProxy, "one");
    await leaderIs("one");
    run(admin, "two");
    let turn = 0;
    proxy.rule = () => {
      turn += 1;
      if (turn > 6) return undefined;
      return turn % 2 === 0 ? { kind: "answer", status: 500 } : { kind: "drop", when: "after" };
    };
    await soon("the faults are over", () => turn > 10);
    expect([...leaders]).toEqual(["one"]);
    expect(most).toBe(1);
  });
});

describe("an event", () => {
  let regarding: KubernetesObject;
  let clock: FakeClock;
  let dropped: unknown[];

  beforeEach(async () => {
    const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "voice", namespace } };
    regarding = await admin.apply(manifest);
    clock = new FakeClock();
    dropped = [];
  });

  const recorder = (client: ClusterClient = admin) =>
    new EventRecorder({
      client,
      clock,
      instance: "operator-0",
      onDropped: (_happening, reason) => dropped.push(reason),
    });
  const happening = (rest: Partial<EventDetails> = {}): EventDetails => ({
    regarding,
    type: "Warning",
    reason: "LicenseExpired",
    action: "HoldRollout",
    note: "The license has expired; put a new one into Secret license.",
    ...rest,
  });
  const written = () => admin.list("Event", { namespace });

  test("is written in the form that the server requires", async () => {
    const events = recorder();
    events.record(happening());
    await events.flush();
    expect(await written()).toMatchObject([
      {
        type: "Warning",
        reason: "LicenseExpired",
        regarding: { name: "voice", uid: regarding.metadata.uid },
      },
    ]);
    expect(dropped).toEqual([]);
  });

  test("that repeats becomes one object with a count, which is written once a minute", async () => {
    const events = recorder();
    for (let second = 0; second <= 120; second += 1) {
      events.record(happening());
      await clock.advance(1_000);
    }
    await events.flush();
    expect(await written()).toMatchObject([{ series: { count: 121 } }]);
    expect(dropped).toEqual([]);
  });

  test("with another note is another object, up to a limit for each object", async () => {
    const events = recorder();
    for (let number = 0; number < 40; number += 1)
      events.record(happening({ note: `Pod ${number} failed.` }));
    await events.flush();
    expect(await written()).toHaveLength(25);
    expect(dropped).toHaveLength(15);
  });

  test("of type Warning is not lost among many normal ones", async () => {
    const events = recorder();
    for (let number = 0; number < 40; number += 1)
      events.record(happening({ type: "Normal", reason: "Scaled", note: `From ${number} replicas.` }));
    events.record(happening({ reason: "CanaryRolledBack" }));
    await events.flush();
    expect((await written()).map(({ reason }) => reason)).toContain("CanaryRolledBack");
  });

  test("with a note of any length and script is shortened and written", async () => {
    const events = recorder();
    events.record(happening({ note: "ü".repeat(2_000) }));
    await events.flush();
    const [event] = await written();
    expect(Buffer.byteLength(String(event?.note))).toBeLessThanOrEqual(1_024);
    expect(String(event?.note)).toMatch(/^ü+…$/);
  });

  test("that cannot be written is dropped and reported, without an error", async () => {
    const events = recorder();
    const elsewhere = { ...regarding, metadata: { ...regarding.metadata, namespace: "there-is-none" } };
    events.record(happening({ regarding: elsewhere }));
    events.record(happening());
    await events.flush();
    expect(dropped).toMatchObject([{ status: 404 }]);
    expect(await written()).toHaveLength(1);
  });
});
