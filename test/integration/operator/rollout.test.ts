import { beforeEach, describe, expect, it } from "vitest";
import { attemptLabel } from "../../../config/contract/pool-metrics.ts";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { passBesideHeld } from "../../support/operator/held-requests.ts";
import { History, type Version, versionOf } from "../../support/operator/history.ts";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

/** Tests rollouts of a pool on a real API server. The tests simulate the Deployment controller. */

let house: OperatorHouse;
/** The streams of the canary in the metrics of the API pods, by outcome. */
let counted = { ok: 0, error: 0 };

useOperatorHouse((opened) => {
  house = opened;
});

beforeEach(async () => {
  counted = { ok: 0, error: 0 };
  [revision, label, earlier] = ["", "", ""];
  await restartOperator();
});

async function restartOperator(image?: string): Promise<void> {
  await house.restart({ metrics, ...(image !== undefined && { image }) });
}

/** Returns the metrics of the API pods for the current and the earlier attempts of the canary. */
function metrics(): string {
  const now = ["ok", "error"]
    .map(
      (outcome) =>
        `svc_tts_pool_spoken_total{pool="mist-canary",revision="${label}",outcome="${outcome}"} ${counted[outcome as "ok"]}`,
    )
    .join("\n");
  return `${earlier}\n${now}`;
}
/** The revision and the attempt in the last status with a canary. */
let revision = "";
let label = "";
/** The metrics of earlier attempts. */
let earlier = "";

const analysis = { intervalSeconds: 1, minRequests: 10, maxErrorPercent: 5 };
const canary = {
  steps: [
    { weight: 20, pauseSeconds: 1 },
    { weight: 50, pauseSeconds: 1 },
  ],
  analysis,
};
const good = { ok: 40, error: 0 };
const bad = { ok: 15, error: 5 };
const mist = (more: object = {}, rollout: object = { canary }) => [
  { name: "mist", kind: "mist", replicas: 4, rollout, ...more },
];
/** The number of writes after which a new operator replaces the running operator. */
const writesPerLife = 8;
const changed = { maxConcurrentStreams: 4 };

async function apiPod(): Promise<void> {
  const metadata = {
    name: "demo-api-1",
    namespace: house.namespace,
    labels: { "tts.svc.dev/deployment": "demo", "app.kubernetes.io/component": "api" },
  };
  const spec = { containers: [{ name: "api", image: "i:1" }] };
  const pod = await house.admin.create({ apiVersion: "v1", kind: "Pod", metadata, spec });
  await house.setStatus(pod, { phase: "Running", podIP: "127.0.0.1" });
}

async function begin(rollout?: object): Promise<void> {
  await house.ready({}, mist({}, rollout));
  await apiPod();
}

const state = async () => (await house.pool("demo-mist")).status?.canary;

async function reached(phase: string, step = 0): Promise<void> {
  await house.until(async () => {
    const status = await state();
    revision = status?.revision ?? revision;
    label = status === undefined ? label : attemptLabel(status);
    return status?.phase === phase && status.step === step;
  }, `${phase} at step ${step}`);
}

const shares = async () => sharesIn(await house.mustGet("ConfigMap", "demo-routing"));

function sharesIn({ data }: KubernetesObject): string {
  const { models } = JSON.parse((data as Record<string, string>)["routing.json"] ?? "") as RoutingTable;
  return (models.mist ?? []).map(({ pool, weight }) => `${pool} ${weight}`).join(", ");
}

async function streamsOf(name: string): Promise<string | undefined> {
  const { template } = (await house.workload(name)).spec ?? {};
  return template?.spec?.containers[0]?.env?.find(({ name }) => name.endsWith("MAX_CONCURRENT_STREAMS"))
    ?.value;
}

const canaryDeleted = () => house.untilGone("TtsModelPool", "demo-mist-canary");
const promoted = () => house.until(async () => (await streamsOf("demo-mist")) === "4", "the promotion");

/** Starts a canary with changed settings, and waits for its first pods. */
async function tryChange(): Promise<void> {
  await house.putDeployment({}, mist(changed));
  await reached("Starting");
  await house.serve("demo-mist-canary");
}

describe("a canary", () => {
  it("with good metrics receives its shares of the streams, and is then promoted to every pod", async () => {
    await begin();
    await tryChange();
    await reached("Analysing");
    await house.until(async () => (await shares()) === "mist 80, mist-canary 20", "the first shares");
    expect([await streamsOf("demo-mist"), await streamsOf("demo-mist-canary")]).toEqual(["16", "4"]);
    await house.untilCondition("RolloutHealthy", /^True Canary: .*20% of the streams, step 1 of 2/);
    counted = { ok: 40, error: 1 };
    await reached("Starting", 1);
    await house.untilReplicas("demo-mist-canary", 2);
    await house.idle();
    expect(await state(), "the canary waits for its second pod").toMatchObject({
      phase: "Starting",
      step: 1,
      weight: 20,
    });
    expect(await shares()).toBe("mist 80, mist-canary 20");
    await house.serve("demo-mist-canary");
    await house.until(async () => (await shares()) === "mist 50, mist-canary 50", "the second shares");
    await promoted();
    expect(await shares()).toBe("mist 50, mist-canary 50");
    await house.serve("demo-mist");
    await canaryDeleted();
    expect(await shares()).toBe("mist 100");
    await house.untilReady();
    const { status } = await house.pool("demo-mist");
    expect(status).toMatchObject({ currentRevision: revision, updateRevision: revision });
    expect(status?.canary).toBeUndefined();
    expect(await house.writesDuring(1_500)).toBe(0);
  });

  it("with failing streams is rolled back, and the conditions have the reason", async () => {
    await begin();
    const before = await house.workload("demo-mist");
    await tryChange();
    await reached("Analysing");
    counted = bad;
    await reached("RolledBack");
    await canaryDeleted();
    expect(await shares()).toBe("mist 100");
    expect(await house.condition("RolloutHealthy")).toMatch(
      /^False CanaryErrors: .*5 of its 20 streams failed \(25.0%\).*restart="\$\(date -Is\)"/,
    );
    expect(await house.condition("Stalled")).toMatch(/^True CanaryErrors/);
    await restartOperator();
    await house.idle();
    expect((await house.workload("demo-mist")).spec?.template).toEqual(before.spec?.template);
    // The earlier settings still run, so the pool is ready when the spec has the earlier settings again.
    await house.putDeployment({}, mist());
    await house.untilReady();
    expect(await state()).toBeUndefined();
  });

  it("that is retried is analysed only by the streams of the new attempt", async () => {
    await begin();
    await tryChange();
    await reached("Analysing");
    counted = bad;
    await reached("RolledBack");
    const firstRevision = revision;
    await house.putDeployment({}, mist());
    await canaryDeleted();
    await house.until(async () => (await state()) === undefined, "the earlier settings");
    [earlier, counted] = [metrics(), { ok: 0, error: 0 }];
    await house.advance(1_000);
    await tryChange();
    await reached("Analysing");
    expect(revision).toBe(firstRevision);
    await house.advance(2_500);
    expect(await state(), "the new attempt has no streams").toMatchObject({
      phase: "Analysing",
      step: 0,
    });
    counted = good;
    await reached("Starting", 1);
  });

  it("that is rolled back during the write of its share receives no streams afterwards", async () => {
    await begin();
    await house.idle();
    let isHeld = false;
    const released = Promise.withResolvers<void>();
    house.proxy.rule = ({ method, path }) => {
      if (method !== "PATCH" || !path.endsWith("/configmaps/demo-routing")) return undefined;
      isHeld = true;
      return { kind: "hold", when: "before", until: released.promise };
    };
    using pools = await History.of(house.admin, "TtsModelPool", house.namespace);
    using tables = await History.of(house.admin, "ConfigMap", house.namespace);
    await tryChange();
    await house.until(async () => isHeld, "the write of the first shares");
    counted = bad;
    // This time is long enough for the operator to analyse the canary, to roll it back and to delete its
    // pool.
    await passBesideHeld(house, 5, 1_000);
    released.resolve();
    await reached("RolledBack");
    await canaryDeleted();
    await house.idle();
    const [end] = (await pools.versions()).filter(({ type }) => type === "DELETED");
    expect(end?.object.metadata.name).toBe("demo-mist-canary");
    const written = (await tables.versions()).filter(({ object }) => object.metadata.name === "demo-routing");
    expect(written.map(({ object }) => sharesIn(object))).toContain("mist 80, mist-canary 20");
    const isBefore = ({ object }: Version) => end !== undefined && versionOf(object) < versionOf(end.object);
    const served = [...written.filter(isBefore).slice(-1), ...written.filter((one) => !isBefore(one))];
    expect(new Set(served.map(({ object }) => sharesIn(object)))).toEqual(new Set(["mist 100"]));
  });

  it("is paused and promoted by kubectl annotate", async () => {
    await begin();
    await house.putDeployment({}, mist(changed));
    await reached("Starting");
    const annotate = (action: string) =>
      house.kubectl("annotate", "ttsmp/demo-mist", `tts.svc.dev/canary-${action}=${revision}`);
    await annotate("pause");
    await house.serve("demo-mist-canary");
    await reached("Analysing");
    counted = good;
    await house.advance(2_500);
    expect(await state()).toMatchObject({ phase: "Analysing", step: 0 });
    await annotate("promote");
    await promoted();
  });

  it("completes although every third response to a write is lost and the operator restarts repeatedly", async () => {
    await begin();
    let [writes, lostResponses, restarts] = [0, 0, 0];
    let restarting = Promise.resolve();
    house.proxy.rule = ({ method }) => {
      if (method === "GET") return undefined;
      writes += 1;
      if (writes % writesPerLife === 0) {
        restarts += 1;
        restarting = restarting.then(() => restartOperator());
      }
      if (writes % 3 !== 0) return undefined;
      lostResponses += 1;
      return { kind: "drop", when: "after" };
    };
    try {
      await tryChange();
      await reached("Analysing");
      counted = good;
      await reached("Starting", 1);
      await house.untilReplicas("demo-mist-canary", 2);
      await house.serve("demo-mist-canary");
      await promoted();
      await house.serve("demo-mist");
      await canaryDeleted();
    } finally {
      house.proxy.rule = () => undefined;
      await restarting;
    }
    expect(lostResponses).toBeGreaterThan(3);
    expect(restarts).toBeGreaterThan(1);
    await house.untilReady();
    expect(await shares()).toBe("mist 100");
  });
});

describe("a rollout without a canary", () => {
  it("waits for its maintenance window, and the condition has the time at which the window opens", async () => {
    const hour = (new Date().getUTCHours() + 12) % 24;
    const start = `${String(hour).padStart(2, "0")}:00`;
    const maintenanceWindow = { start, duration: "1h" };
    await begin({ maintenanceWindow });
    await house.putDeployment({}, mist(changed, { maintenanceWindow }));
    await house.untilCondition("RolloutHealthy", /^True AwaitingMaintenanceWindow: .*opens at \d{4}-/);
    expect(await streamsOf("demo-mist")).toBe("16");
    await house.putDeployment({}, mist(changed, {}));
    await house.until(async () => (await streamsOf("demo-mist")) === "4", "the rollout");
  });

  it("to the pod template of a newer operator waits until a user requests it", async () => {
    await begin({});
    const before = await house.workload("demo-mist");
    await restartOperator("registry.example/svc-tts/server:0.2.0");
    // The operator evaluates the API tier and the pool one after the other, so the message first has only one
    // of them.
    await house.untilCondition("RevisionOutdated", /^True OperatorChanged: .*\bapi, pool mist\b/);
    expect((await house.workload("demo-mist")).metadata.generation).toBe(before.metadata.generation);
    await house.kubectl("annotate", "ttsd/demo", "tts.svc.dev/restart=now");
    for (const name of ["demo-api", "demo-mist"])
      await house.until(
        async () => JSON.stringify((await house.workload(name)).spec?.template).includes("server:0.2.0"),
        `the new pods of ${name}`,
      );
    await house.serve("demo-api", "demo-mist");
    await house.untilCondition("RevisionOutdated", /^False Current/);
  });
});

describe("a rollout of the API tier", () => {
  it("waits for its maintenance window, while the first start and the pools do not wait", async () => {
    const hour = (new Date().getUTCHours() + 12) % 24;
    const maintenanceWindow = { start: `${String(hour).padStart(2, "0")}:00`, duration: "1h" };
    const api = (more: object) => ({ api: { rollout: { maintenanceWindow }, ...more } });
    await house.ready(api({}), mist({}, {}));
    const before = await house.workload("demo-api");
    const newer = { image: "registry.example/svc-tts/server:0.2.0", replicas: 2 };
    await house.putDeployment(api(newer), mist(changed, {}));
    await house.until(async () => (await streamsOf("demo-mist")) === "4", "the rollout of the pool");
    await house.untilReplicas("demo-api", 2);
    await house.serve("demo-api", "demo-mist");
    await house.untilCondition(
      "RolloutHealthy",
      /^True AwaitingMaintenanceWindow: api: .*opens at \d{4}-.*remove api\.rollout\.maintenanceWindow/,
    );
    expect((await house.workload("demo-api")).spec?.template).toEqual(before.spec?.template);
    expect(await house.condition("ApiReady")).toMatch(/^False AwaitingMaintenanceWindow/);
    await house.advance(12 * 3_600_000);
    await house.until(
      async () => JSON.stringify((await house.workload("demo-api")).spec?.template).includes("server:0.2.0"),
      "the rollout of the API tier",
    );
    await house.serve("demo-api");
    await house.untilReady();
  });
});
