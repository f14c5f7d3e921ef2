import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import type { Deployment } from "../../../operator/facts/observed.ts";
import { startHpaController } from "../../support/cluster/hpa-controller.ts";
import { ApiPod, putApiPod as putOne, putPod } from "../../support/operator/api-pods.ts";
import { History } from "../../support/operator/history.ts";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";
import { leasePort } from "../../support/port-lease.ts";

/**
 * Tests the built-in scaler with a real API server and the role of the chart. The test serves the load of the
 * API pods.
 */

type Json = { [name: string]: unknown };
let house: OperatorHouse;
let api: ApiPod;

useOperatorHouse((opened) => {
  house = opened;
});

beforeEach(async () => {
  api = await ApiPod.start();
});

afterEach(() => api[Symbol.asyncDispose]());

const quick = {
  scaleDown: { stabilizationWindowSeconds: 1, policies: [{ type: "Percent", value: 100, periodSeconds: 1 }] },
};

function mist(scaling: Json): Json {
  return { name: "mist", kind: "mist", scaling: { maxReplicas: 4, behavior: quick, ...scaling } };
}

const putApiPod = (name = "demo-api-1", port = api.port) => putOne(house, port, name);

/** Creates an API pod, and waits until the operator reads its load. */
async function connectedApiPod(): Promise<void> {
  await putApiPod();
  await house.until(async () => api.readers === 1, "the connection of the operator");
}

const putModelPod = (name: string, podIP: string) =>
  putPod(house, name, { [labels.deployment]: "demo", [labels.pool]: "mist" }, { name: "mist" }, podIP);

const replicas = () => house.replicas("demo-mist");

const scaledTo = (count: number) => house.untilReplicas("demo-mist", count);

/** Waits until the operator logs that it cannot read the load of the pod. */
const untilUnreachable = (pod: string) =>
  house.until(
    async () =>
      house.lines.some(
        (line) =>
          line.startsWith("the operator cannot read the load report of an API pod") && line.includes(pod),
      ),
    `the log message about ${pod}`,
  );

const route = async () => (await house.routing()).models.mist?.[0];

/**
 * A time that is longer than every window of `quick`, and shorter than the time for which the operator uses
 * the last load of an API pod that no longer reports.
 */
const restMs = 10_000;

/** Checks that the operator sends no requests. */
async function expectNoRequests(): Promise<void> {
  expect(await house.requestsDuring(restMs)).toEqual([]);
}

/**
 * Waits until the operator has read every line of the API pod. The test sends another line, which differs
 * from all earlier lines.
 */
async function untilLoadRead(): Promise<void> {
  beats += 1;
  api.tell("unknown", { replicas: { "http://10.9.9.9:8080": beats } });
  await house.hears(api);
}
let beats = 0;

async function deployScaled(scaling: Json, count: number): Promise<void> {
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment({}, [mist(scaling)]);
  await house.serve("demo-api", "demo-mist");
  await connectedApiPod();
  await scaledTo(count);
}

describe("the API tier", () => {
  const scaling = { maxReplicas: 3, target: { streamsPerReplica: 10 }, behavior: quick };
  const apiPods = (count: number) => house.untilReplicas("demo-api", count);

  it("follows the streams of all models between api.replicas and maxReplicas, and causes no write if nothing changed", async () => {
    await house.ready({ api: { scaling } });
    const { generation } = (await house.workload("demo-mist")).metadata;
    await connectedApiPod();
    api.tell("mist", { streams: 11 });
    await apiPods(2);
    api.tell("other", { streams: 7, waiting: 70 });
    await apiPods(3);
    await house.serve("demo-api");
    await house.untilReady();
    await expectNoRequests();
    api.tell("mist", {});
    api.tell("other", {});
    await apiPods(1);
    expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
    await house.putDeployment({ api: { replicas: 2 } });
    await apiPods(2);
    api.tell("mist", { streams: 30 });
    await expectNoRequests();
    expect(await house.replicas("demo-api")).toBe(2);
  });

  it("keeps its pods while one of them does not report its load", async () => {
    await house.ready({ api: { replicas: 1, scaling } });
    await connectedApiPod();
    api.tell("mist", { streams: 21 });
    await apiPods(3);
    await putApiPod("demo-api-2", await leasePort());
    await untilUnreachable("demo-api-2");
    api.tell("mist", {});
    await house.hears(api);
    await expectNoRequests();
    expect(await house.replicas("demo-api")).toBe(3);
  });
});

describe("a pool with the built-in scaler", () => {
  it("is ready at zero, starts for the first request, and scales to zero again", async () => {
    await deployScaled({ minReplicas: 0 }, 0);
    await house.untilReady();
    expect(await route()).toMatchObject({ idle: true, wakes: true });
    const beganMs = performance.now();
    api.tell("mist", { waiting: 1 });
    await scaledTo(1);
    console.info(`from the first request to the scale-up: ${Math.round(performance.now() - beganMs)} ms`);
    await house.until(async () => (await route())?.idle === false, "a route");
    await house.serve("demo-mist");
    expect(await house.condition("Ready")).toMatch(/^True/);
    api.tell("mist", {});
    await scaledTo(0);
    await house.until(async () => (await route())?.idle === true, "no route");
  });

  it("follows the load, reports it, and sends the internal token", async () => {
    api.tell("mist", { streams: 9, replicas: { "http://10.0.0.1:8080": 9 } });
    await deployScaled({ target: { streamsPerReplica: 4 } }, 3);
    await house.serve("demo-mist");
    await house.until(async () => {
      const { status } = await house.deployment();
      return status?.models[0]?.capacity.used === 9 && status.summary.streams === "9/48";
    }, "the used streams and the capacity in the status");
    expect(await house.condition("ScalingReady")).toMatch(/^True Following: /);
    const { data } = await house.mustGet("Secret", "demo-token");
    const token = Buffer.from((data as Record<string, string>).token ?? "", "base64").toString();
    expect(new Set(api.tokens)).toEqual(new Set([`Bearer ${token}`]));
  });

  it("stays ready while it scales up and down", async () => {
    await deployScaled({ target: { streamsPerReplica: 4 } }, 1);
    await house.untilReady();
    const ready = async () =>
      (await house.deployment()).status?.conditions.find(({ type }) => type === "Ready");
    const before = await ready();
    // Transition times have a resolution of one second, so the clock moves on.
    await house.advance(1_100);
    api.tell("mist", { streams: 9 });
    await scaledTo(3);
    await house.serve("demo-mist");
    api.tell("mist", { streams: 1 });
    await scaledTo(1);
    await house.serve("demo-mist");
    await house.idle();
    expect(await ready()).toEqual(before);
  });

  it("causes at most one status write per minute and object while the load changes, and few reconciles", async () => {
    const scaling = { target: { streamsPerReplica: 1_000 } };
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({}, [mist(scaling), { ...mist(scaling), name: "second" }]);
    await house.serve("demo-api", "demo-mist", "demo-second");
    await connectedApiPod();
    const reportLoad = async (streams: number) => {
      api.tell("mist", { streams });
      api.tell("second", { streams: streams + 1 });
      await house.hears(api);
      await house.advance(restMs);
    };
    await reportLoad(1);
    const [writes, lines, startMs] = [
      house.proxy.count("write"),
      house.lines.length,
      house.clock.monotonicMs(),
    ];
    for (let streams = 2; streams < 8; streams += 1) await reportLoad(streams);
    // The limit is one write per minute for each of the two pools and the TtsDeployment. The clock also
    // follows real time.
    const most = 3 * (Math.floor((house.clock.monotonicMs() - startMs) / 60_000) + 1);
    expect(house.proxy.count("write") - writes).toBeLessThanOrEqual(most);
    const reconciles = house.lines.slice(lines).filter((line) => line.startsWith("a reconcile has ended "));
    expect(reconciles.length).toBeLessThanOrEqual(2 * most);
    expect((await house.deployment()).status?.summary.streams).toMatch(/^\d+\/32$/);
  });

  it("causes no write while the load does not change", async () => {
    await deployScaled({ target: { streamsPerReplica: 4 } }, 1);
    api.tell("mist", { streams: 3 });
    await house.serve("demo-mist");
    // The operator writes the used streams to the status once a minute.
    for (let round = 0; round < 7; round += 1) {
      await untilLoadRead();
      await house.advance(restMs);
    }
    expect((await house.deployment()).status?.models[0]?.capacity.used).toBe(3);
    const before = house.proxy.count("write");
    for (let line = 0; line < 10; line += 1) api.tell("mist", { streams: 3 });
    await untilLoadRead();
    await expectNoRequests();
    expect(house.proxy.count("write")).toBe(before);
  });

  it("does not scale down while an API pod does not report its load", async () => {
    await deployScaled({ target: { streamsPerReplica: 4 } }, 1);
    api.tell("mist", { streams: 9 });
    await scaledTo(3);
    await putApiPod("demo-api-2", await leasePort()); // Nothing listens on this port.
    await untilUnreachable("demo-api-2");
    api.tell("mist", {});
    await house.hears(api);
    await house.advance(restMs);
    expect(await replicas()).toBe(3);
    await house.remove("Pod", "demo-api-2");
    await untilLoadRead();
    await scaledTo(1);
  });

  it("reconnects to a pod after its connection was lost", async () => {
    await deployScaled({ target: { streamsPerReplica: 4 } }, 1);
    const requestsBefore = api.tokens.length;
    api.cut();
    await house.until(async () => api.tokens.length > requestsBefore, "the new connection of the operator");
    api.tell("mist", { streams: 9 });
    await scaledTo(3);
  });

  it("marks the pods with the fewest streams before it scales down", async () => {
    await deployScaled({ target: { streamsPerReplica: 4 } }, 1);
    const streams = { "http://10.0.0.1:8080": 4, "http://10.0.0.2:8080": 0, "http://10.0.0.3:8080": 5 };
    for (const [index, url] of Object.keys(streams).entries()) {
      await putModelPod(`demo-mist-${index + 1}`, new URL(url).hostname);
    }
    api.tell("mist", { streams: 9, replicas: streams });
    await scaledTo(3);
    api.tell("mist", { streams: 8, replicas: { ...streams, "http://10.0.0.3:8080": 4 } });
    await scaledTo(2);
    const costs = await Promise.all(
      [1, 2, 3].map(async (index) => (await house.mustGet("Pod", `demo-mist-${index}`)).metadata.annotations),
    );
    expect(costs).toEqual([undefined, { "controller.kubernetes.io/pod-deletion-cost": "-1" }, undefined]);
  });

  it("is limited by the license, reports the limit, and scales up with a larger license", async () => {
    await deployScaled({ target: { streamsPerReplica: 4 } }, 1);
    await house.putLicense(await house.issuer.issue({ maxStreams: 32 }));
    await house.idle();
    api.tell("mist", { streams: 13 });
    await scaledTo(2);
    await house.untilCondition("ScalingReady", /^False LicenseHold/);
    await house.putLicense(await house.issuer.issue({ maxStreams: 64 }));
    await scaledTo(4);
  });

  it("reverts replicas that a user sets with kubectl scale", async () => {
    await deployScaled({}, 1);
    await house.kubectl("scale", "ttsmp/demo-mist", "--replicas=4");
    await house.until(async () => (await house.pool("demo-mist")).spec.replicas === 1, "one replica");
  });
});

describe("the scaling provider", () => {
  it("can change without an effect on the replicas (fixed, Builtin, HPA, External, fixed)", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 3 }]);
    await putApiPod();
    using history = await History.of(house.admin, "Deployment", house.namespace);
    api.tell("mist", { streams: 30 });
    for (const scaling of [{}, { provider: "HPA" }, { provider: "External" }]) {
      const more = "provider" in scaling && scaling.provider === "External" ? scaling : mist(scaling).scaling;
      await house.putDeployment({}, [{ name: "mist", kind: "mist", scaling: more }]);
      await house.idle();
    }
    await house.putDeployment({}, [{ name: "mist", kind: "mist", replicas: 3 }]);
    await house.idle();
    const versions = (await history.versions()).filter(({ object }) => object.metadata.name === "demo-mist");
    expect(new Set(versions.map(({ object }) => (object as Deployment).spec?.replicas))).toEqual(
      new Set([3]),
    );
    expect(await house.get("HorizontalPodAutoscaler", "demo-mist")).toBeUndefined();
  });

  it("HPA creates a HorizontalPodAutoscaler for the pool, and the pool reports its condition", async () => {
    await house.ready({}, [mist({ provider: "HPA", minReplicas: 1, target: { streamsPerReplica: 5 } })]);
    const autoscaler = await house.mustGet("HorizontalPodAutoscaler", "demo-mist");
    expect(autoscaler.spec).toMatchObject({
      scaleTargetRef: { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsModelPool", name: "demo-mist" },
      minReplicas: 1,
      maxReplicas: 4,
      metrics: [
        {
          type: "External",
          external: {
            metric: {
              name: "svc_tts_pool_streams",
              selector: { matchLabels: { tts_svc_dev_deployment: "demo", pool: "mist" } },
            },
            target: { type: "AverageValue", averageValue: "5" },
          },
        },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 1 } },
    });
    const inactive = {
      ...{ type: "ScalingActive", status: "False", reason: "FailedGetExternalMetric" },
      ...{ message: "no matches", lastTransitionTime: "2026-01-01T00:00:00Z" },
    };
    await house.setStatus(autoscaler, { desiredReplicas: 1, currentMetrics: [], conditions: [inactive] });
    await house.untilCondition(
      "ScalingReady",
      /^False FailedGetExternalMetric: pool mist: HorizontalPodAutoscaler demo-mist: no matches$/,
    );
    await expectNoRequests();
  });

  it("HPA lets the HPA controller of Kubernetes scale the pool from one replica to two and back", async () => {
    let streams = 3;
    await using controller = await startHpaController(inject("controlPlane"), ({ namespace }) =>
      namespace === house.namespace ? streams : undefined,
    );
    await house.ready({}, [mist({ provider: "HPA", minReplicas: 1, target: { streamsPerReplica: 4 } })]);
    await house.untilCondition("ScalingReady", /^True Following/);
    expect(await replicas()).toBe(1);
    streams = 8;
    await scaledTo(2);
    await house.serve("demo-mist");
    streams = 2;
    await scaledTo(1);
    expect(controller.queries.find(({ namespace }) => namespace === house.namespace)).toEqual({
      namespace: house.namespace,
      name: "svc_tts_pool_streams",
      selector: "pool=mist,tts_svc_dev_deployment=demo",
    });
  });

  it("HPA keeps one replica if HorizontalPodAutoscalers must not scale to zero, and the condition reports it", async () => {
    await house.ready({}, [mist({ provider: "HPA", minReplicas: 0 })]);
    const made = await house.mustGet("HorizontalPodAutoscaler", "demo-mist");
    expect(made.spec).toMatchObject({ minReplicas: 1 });
    await house.untilCondition("ScalingReady", /^False ScaleToZeroRefused/);
    expect(await house.condition("Ready")).toMatch(/^True/);
  });
});
