/**
 * Tests the leader election and the event recorder with a real API server, which rejects malformed times and
 * events.
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
  /** The highest number of simultaneous leaders. */
  let most: number;
  /**
   * The clock of all elections. While a leader must remain, the test moves the clock in small steps, so that
   * a pause of the machine does not end the lease.
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

  const soon = (what: string, condition: () => boolean, stepMs = 100) =>
    eventuallyOn(clock, what, condition, stepMs);
  const leaderIs = (identity: string, stepMs?: number) =>
    soon(`${identity} to be the only leader`, () => [...leaders].join() === identity, stepMs);

  test("write valid times, and never lead at the same time", async () => {
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
    const listsBefore = proxy.count("list");
    await soon("more requests of the old leader", () => proxy.count("list") > listsBefore + 3);
    expect([...leaders]).toEqual(["two"]);
    expect(most).toBe(1);
  });

  test("that start at the same time elect one leader", async () => {
    for (const identity of ["a", "b", "c", "d"]) run(behindProxy, identity);
    await soon("one leader", () => leaders.size === 1);
    // The other candidates request the lease repeatedly.
    const listsBefore = proxy.count("list");
    await soon("more requests of the other candidates", () => proxy.count("list") > listsBefore + 12);
    expect(most).toBe(1);
  });

  test("transfer the lease immediately when the leader stops", async () => {
    const one = run(behindProxy, "one");
    await leaderIs("one");
    run(admin, "two");
    await soon("the renewal of the lease", () => proxy.count("write") > 1);
    await one.stop();
    leaders.delete("one");
    await leaderIs("two");
  });

  test("keep their leader if rejections and lost connections end before the renew deadline", async () => {
    run(behindProxy, "one");
    await leaderIs("one");
    run(admin, "two");
    let turn = 0;
    proxy.rule = () => {
      turn += 1;
      if (turn > 6) return undefined;
      return turn % 2 === 0 ? { kind: "answer", status: 500 } : { kind: "drop", when: "after" };
    };
    await soon("the end of the faults", () => turn > 10);
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
      onDropped: (_details, reason) => dropped.push(reason),
    });
  const details = (rest: Partial<EventDetails> = {}): EventDetails => ({
    regarding,
    type: "Warning",
    reason: "LicenseExpired",
    action: "HoldRollout",
    note: "The license has expired; put a new one into Secret license.",
    ...rest,
  });
  const events = () => admin.list("Event", { namespace });

  test("is written in the form that the API server requires", async () => {
    const eventRecorder = recorder();
    eventRecorder.record(details());
    await eventRecorder.flush();
    expect(await events()).toMatchObject([
      {
        type: "Warning",
        reason: "LicenseExpired",
        regarding: { name: "voice", uid: regarding.metadata.uid },
      },
    ]);
    expect(dropped).toEqual([]);
  });

  test("that is repeated becomes one object with a count, which is updated once a minute", async () => {
    const eventRecorder = recorder();
    for (let second = 0; second <= 120; second += 1) {
      eventRecorder.record(details());
      await clock.advance(1_000);
    }
    await eventRecorder.flush();
    expect(await events()).toMatchObject([{ series: { count: 121 } }]);
    expect(dropped).toEqual([]);
  });

  test("with another note becomes another object, up to a limit for each regarding object", async () => {
    const eventRecorder = recorder();
    for (let number = 0; number < 40; number += 1)
      eventRecorder.record(details({ note: `Pod ${number} failed.` }));
    await eventRecorder.flush();
    expect(await events()).toHaveLength(25);
    expect(dropped).toHaveLength(15);
  });

  test("of type Warning is written although many Normal events are dropped", async () => {
    const eventRecorder = recorder();
    for (let number = 0; number < 40; number += 1)
      eventRecorder.record(details({ type: "Normal", reason: "Scaled", note: `From ${number} replicas.` }));
    eventRecorder.record(details({ reason: "CanaryRolledBack" }));
    await eventRecorder.flush();
    expect((await events()).map(({ reason }) => reason)).toContain("CanaryRolledBack");
  });

  test("with a too long note of non-ASCII characters is shortened and written", async () => {
    const eventRecorder = recorder();
    eventRecorder.record(details({ note: "ü".repeat(2_000) }));
    await eventRecorder.flush();
    const [event] = await events();
    expect(Buffer.byteLength(String(event?.note))).toBeLessThanOrEqual(1_024);
    expect(String(event?.note)).toMatch(/^ü+…$/);
  });

  test("that the API server rejects is dropped and reported, without an error", async () => {
    const eventRecorder = recorder();
    const elsewhere = { ...regarding, metadata: { ...regarding.metadata, namespace: "there-is-none" } };
    eventRecorder.record(details({ regarding: elsewhere }));
    eventRecorder.record(details());
    await eventRecorder.flush();
    expect(dropped).toMatchObject([{ status: 404 }]);
    expect(await events()).toHaveLength(1);
  });
});
