import { describe, expect, it } from "vitest";
import { fieldManager } from "../../../config/contract/names.ts";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

let house: OperatorHouse;
const dayMs = 86_400_000;

/**
 * Checks that an idle operator sends no request for the given time. The license is valid for longer, so that
 * no expiry and no warning causes a request.
 */
async function expectNoRequests(durationMs: number): Promise<void> {
  const exp = Math.floor((Date.now() + 400 * dayMs) / 1000);
  await house.putLicense(await house.issuer.issue({ exp }));
  await house.until(async () => {
    const { status } = await house.deployment();
    return Date.parse(status?.license?.expiresAt ?? "") === exp * 1000;
  }, "the long license in the status");
  await house.idle();
  const writes = house.proxy.count("write");
  await house.touch("at rest");
  await house.idle();
  expect(house.proxy.count("write")).toBe(writes);
  expect(await house.requestsDuring(durationMs)).toEqual([]);
}

useOperatorHouse((opened) => {
  house = opened;
});

const children = [
  ["ServiceAccount", "demo-api"],
  ["ServiceAccount", "demo-model"],
  ["Role", "demo-api"],
  ["RoleBinding", "demo-api"],
  ["ConfigMap", "demo-routing"],
  ["Secret", "demo-token"],
  ["Service", "demo-api"],
  ["Service", "demo-mist"],
  ["Deployment", "demo-api"],
  ["Deployment", "demo-mist"],
  ["TtsModelPool", "demo-mist"],
] as const;

describe("one TtsDeployment", () => {
  it("has all its children, and is ready when their pods are ready", async () => {
    await house.ready();
    for (const [kind, name] of children) await house.mustGet(kind, name);
    const { status } = await house.deployment();
    expect(status).toMatchObject({
      observedGeneration: 1,
      endpoint: `http://demo-api.${house.namespace}.svc:8000`,
      version: "0.1.0",
      summary: { models: "1/1", streams: "16" },
      license: { state: "valid", licensee: "Example GmbH" },
      models: [{ name: "mist", replicas: 1, readyReplicas: 1, capacity: { streams: 16 } }],
    });
    const states = status?.conditions.map(({ type, status }) => `${type}=${status}`);
    expect(states).toEqual([
      "Ready=True",
      "Reconciling=False",
      "Stalled=False",
      "LicenseValid=True",
      "ModelsReady=True",
      "ApiReady=True",
      "RolloutHealthy=True",
      "RevisionOutdated=False",
    ]);
    expect((await house.routing()).models.mistv2).toEqual([
      { pool: "mist", service: "http://demo-mist:8080", weight: 100, idle: false },
    ]);
    expect(await house.kubectl("get", "ttsd")).toMatch(/^demo\s+True\s+valid\s+1\/1\s+16\s+0\.1\.0\s+/m);
  });

  it("counts only ready pods and their streams in the status", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 2, maxConcurrentStreams: 16 }]);
    const live = await house.workload("demo-mist");
    await house.setStatus(live, { ...live.status, readyReplicas: 1, availableReplicas: 1 });
    await house.idle();
    const { status } = await house.deployment();
    expect(status?.models).toMatchObject([{ replicas: 2, readyReplicas: 1, capacity: { streams: 16 } }]);
    expect(status?.summary).toMatchObject({ models: "0/1", streams: "16" });
  });

  it("causes no write if nothing changed, also when it is reconciled again", async () => {
    await house.ready();
    await expectNoRequests(dayMs / 24);
  });

  it("causes no write if nothing changed, with every field set and values that the API server stores in another form", async () => {
    const probe = { initialDelaySeconds: 1, periodSeconds: 7, failureThreshold: 4, timeoutSeconds: 2 };
    const everything = {
      replicas: 2,
      image: "registry.example/mist@sha256:0",
      resources: {
        requests: { cpu: "0.5", memory: "1024Mi", "ephemeral-storage": "1e3" },
        limits: { cpu: 1, memory: "2.5Gi" },
      },
      env: [
        { name: "EMPTY", value: "" },
        { name: "NEITHER" },
        { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k", optional: false } } },
        { name: "B", valueFrom: { configMapKeyRef: { name: "c", key: "k", optional: true } } },
      ],
      accelerator: {
        resourceName: "example.com/gpu",
        count: 2,
        nodeSelector: { "example.com/gpu": "yes", bare: "" },
        tolerations: [
          { operator: "Exists" },
          { key: "a", value: "b", effect: "NoExecute", tolerationSeconds: 0 },
          { key: "example.com/gpu", operator: "Exists", effect: "NoSchedule" },
        ],
        runtimeClassName: "nvidia",
      },
      sharedMemory: "1024Mi",
      cache: {
        emptyDir: { sizeLimit: "1024Mi" },
        sources: [
          { url: "hf://o/r", secretRef: { name: "s" } },
          { url: "https://host/a.bin", path: "b" },
        ],
      },
      priorityClassName: "speech",
      maxConcurrentStreams: 3,
      rollout: { maxSurge: "25%", maxUnavailable: "0%", progressDeadlineSeconds: 60 },
      drain: { maxStreamSeconds: 1, endpointDelaySeconds: 1 },
      probes: { startup: probe, readiness: probe, liveness: probe },
    };
    await house.ready(
      {
        profile: "cloud",
        imagePullSecrets: [{ name: "z" }, { name: "a" }],
        availability: {
          podDisruptionBudget: { maxUnavailable: "50%" },
          topologySpread: [
            { topologyKey: "topology.kubernetes.io/zone", maxSkew: 2, whenUnsatisfiable: "DoNotSchedule" },
            { topologyKey: "kubernetes.io/hostname" },
          ],
        },
        networkPolicy: {
          enabled: true,
          apiServer: { cidrs: ["192.0.2.0/24", "2001:db8::/32"], ports: [6443] },
          licenseEgress: [{ cidr: "198.51.100.7/32" }, { cidr: "198.51.100.7/32", port: 8443 }],
          metricsFrom: ["monitoring"],
        },
        license: { secretRef: { name: "license", key: "license.jwt" }, gracePeriod: "1h30m" },
        api: {
          image: "registry.example/api:2",
          replicas: 3,
          resources: { requests: { cpu: 1 }, limits: { cpu: "1000m", memory: "1G" } },
          drain: { maxStreamSeconds: 9, endpointDelaySeconds: 2 },
          route: {
            hostnames: ["tts.example.com", "*.example.org"],
            ingress: { className: "nginx", annotations: { "example.com/a": "" }, tlsSecretName: "tls" },
          },
          service: { type: "LoadBalancer", annotations: { "example.com/lb": "", other: "x" } },
          keys: {
            secretRef: { name: "license" },
            postgres: {
              url: "postgres://svc-tts@db.infra/tts?sslmode=verify-full",
              secretRef: { name: "license", key: "license.jwt" },
              caSecretRef: { name: "license" },
            },
          },
          dashboard: {
            url: "https://tts.example.com",
            setupSecretRef: { name: "setup" },
            oidc: {
              issuer: "https://login.example.com",
              clientId: "tts",
              clientSecretRef: { name: "oidc" },
              caSecretRef: { name: "oidc" },
              groups: [{ group: "admins", role: "owner" }],
            },
          },
        },
      },
      [
        { name: "mist", kind: "mist", ...everything },
        { name: "arcana", kind: "arcana", ...everything, replicas: 0, accelerator: { mig: "1g.10gb" } },
        {
          name: "claimed",
          kind: "arcana",
          ...everything,
          accelerator: { claimTemplateName: "gpus" },
          cache: { imageVolume: { reference: "registry.example/model:1" } },
        },
      ],
    );
    await expectNoRequests(dayMs);
    // After a restart, the Applier remembers no object, so a write would show that `isApplied` is wrong.
    expect(await house.writesOfRestart()).toBe(0);
  });

  it("has each deleted child recreated immediately", async () => {
    await house.ready();
    for (const [kind, name] of children) {
      await house.idle();
      const before = await house.mustGet(kind, name);
      await house.remove(kind, name);
      // Only the watch event of the deletion can cause a reconcile this soon.
      const isBack = async () => {
        const now = await house.get(kind, name);
        return now !== undefined && now.metadata.uid !== before.metadata.uid;
      };
      await house.until(isBack, `the recreated ${kind} ${name}`);
    }
  });

  it("keeps its internal token when the Secret is deleted, emptied or changed, and when the operator restarts", async () => {
    await house.ready();
    const { data, metadata } = await house.mustGet("Secret", "demo-token");
    await house.remove("Secret", "demo-token");
    await house.until(async () => {
      const now = await house.get("Secret", "demo-token");
      return now !== undefined && now.metadata.uid !== metadata.uid;
    }, "the token");
    for (const changedData of [{}, { token: "bm9uZQ==", accepted: "bm9ib2R5" }]) {
      const secret = await house.mustGet("Secret", "demo-token");
      await house.admin.replace({ ...secret, data: changedData });
      await house.until(async () => {
        const now = await house.mustGet("Secret", "demo-token");
        return JSON.stringify(now.data) === JSON.stringify(data);
      }, "the token");
    }
    await house.restart();
    await house.idle();
    expect((await house.mustGet("Secret", "demo-token")).data).toEqual(data);
    expect(house.lines.join("\n")).not.toContain(String((data as Record<string, string>).token));
  });

  it("has an event when it is ready, and no Warning events", async () => {
    await house.ready();
    await house.until(async () => {
      const events = await house.admin.list("Event", { namespace: house.namespace });
      return events.some((event) => event.reason === "Serving" && event.type === "Normal");
    }, "the event");
    await house.idle();
    const events = await house.admin.list("Event", { namespace: house.namespace });
    const warnings = events
      // The API server also records Warning events, for example for a lost address of a Service.
      .filter(({ type, reportingController }) => type === "Warning" && reportingController === fieldManager)
      .map(({ reason, note }) => [reason, note]);
    expect(warnings, "a normal start records no Warning event").toEqual([]);
  });
});

describe("pools", () => {
  it("are scaled by kubectl if the spec sets no replicas", async () => {
    await house.ready();
    await house.kubectl("scale", "ttsmp/demo-mist", "--replicas=3");
    await house.untilReplicas("demo-mist", 3);
    await house.untilCondition("Ready", /^False/);
    await house.serve("demo-mist");
    await house.until(async () => (await house.deployment()).status?.summary.streams === "48", "48 streams");
    expect(await house.condition("Ready")).toMatch(/^True/);
  });

  it("keep the replicas of the spec if it sets them", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 2 }]);
    await house.kubectl("scale", "ttsmp/demo-mist", "--replicas=5");
    await house.until(async () => (await house.pool("demo-mist")).spec.replicas === 2, "two replicas");
    expect(await house.replicas("demo-mist")).toBe(2);
  });

  it("keep their replicas when the spec no longer sets them, and then follow kubectl scale", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 3 }]);
    await house.putDeployment({}, [{ name: "mist", kind: "mist", maxConcurrentStreams: 8 }]);
    await house.until(
      async () => (await house.pool("demo-mist")).spec.maxConcurrentStreams === 8,
      "the new settings",
    );
    await house.idle();
    const { metadata, spec } = await house.pool("demo-mist");
    expect(spec.replicas).toBe(3);
    expect(await house.replicas("demo-mist")).toBe(3);
    // The operator writes the pool twice: for the new scaling provider, and for the new settings.
    expect(metadata.generation).toBe(2);
    await house.kubectl("scale", "ttsmp/demo-mist", "--replicas=5");
    await house.untilReplicas("demo-mist", 5);
    await house.putDeployment({}, [{ name: "mist", kind: "mist", replicas: 2 }]);
    await house.untilReplicas("demo-mist", 2);
  });

  it("are ready and idle with zero replicas", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 0 }]);
    expect((await house.routing()).models.mist).toMatchObject([{ pool: "mist", idle: true }]);
  });

  it("that the spec no longer contains are deleted after their route", async () => {
    await house.ready({}, [
      { name: "mist", kind: "mist" },
      { name: "second", kind: "mist" },
    ]);
    await house.putDeployment();
    await house.untilGone("TtsModelPool", "demo-second");
    expect((await house.routing()).models.mist).toMatchObject([{ pool: "mist" }]);
    const writes = house.proxy.requests.filter(({ method }) => method === "PATCH" || method === "DELETE");
    const removal = writes.findIndex(
      ({ method, path }) => method === "DELETE" && path.endsWith("demo-second"),
    );
    const lastRoute = writes.findLastIndex(({ path }) => path.endsWith("demo-routing"));
    expect(lastRoute).toBeLessThan(removal);
  });

  it("without a ready pod get no requests if another pool serves the model", async () => {
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({}, [
      { name: "mist", kind: "mist" },
      { name: "second", kind: "mist" },
    ]);
    await house.serve("demo-second");
    await house.until(async () => {
      const routes = (await house.routing()).models.mist ?? [];
      return routes.map(({ pool, weight }) => `${pool} ${weight}`).join() === "mist 0,second 100";
    }, "the weights");
  });
});

describe("the operator", () => {
  it("starts no pod with a ServiceAccount of another owner", async () => {
    const metadata = { name: "demo-api", namespace: house.namespace };
    await house.admin.create({ apiVersion: "v1", kind: "ServiceAccount", metadata });
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.untilCondition("Stalled", /^True NameTaken/);
    await house.idle();
    expect(await house.condition("Stalled")).toContain(`ServiceAccount ${house.namespace}/demo-api`);
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
  });

  it("reports two TtsDeployments that need a child with the same name, and keeps the existing child", async () => {
    await house.ready({ api: { replicas: 2 } }, [
      { name: "b-c", kind: "mist" },
      { name: "b-api", kind: "mist" },
    ]);
    const names = ["demo-b-c", "demo-b-api"];
    const before = await Promise.all(names.map((name) => house.workload(name)));
    await house.putDeployment({ api: { replicas: 1 } }, [{ name: "c", kind: "mist" }], "demo-b");
    await house.untilCondition("Stalled", /^True NameTaken/, "demo-b");
    await house.idle();
    expect(await house.condition("Stalled", "demo-b")).toContain("belongs to Tts");
    expect(await house.condition("ApiReady", "demo-b")).toMatch(/^False/);
    expect(await house.condition("Ready")).toMatch(/^True/);
    const after = await Promise.all(names.map((name) => house.workload(name)));
    expect(after.map(({ metadata }) => metadata.generation)).toEqual(
      before.map(({ metadata }) => metadata.generation),
    );
  });

  it("changes nothing while a TtsDeployment is suspended, also in case of drift", async () => {
    await house.ready();
    await house.putDeployment({ suspend: true });
    await house.untilCondition("Reconciling", /^False Suspended/);
    await house.idle();
    const writes = house.proxy.count("write");
    await house.remove("Service", "demo-mist");
    await house.remove("Service", "demo-api");
    await house.idle();
    expect(house.proxy.count("write")).toBe(writes);
    await house.putDeployment({ suspend: false });
    await house.untilThere("Service", "demo-mist");
  });

  it("recreates no child during a foreground deletion", async () => {
    await house.ready();
    await house.idle();
    const writes = house.proxy.count("write");
    // The garbage collector detects new kinds every 30 seconds.
    const wait = ["--cascade=foreground", "--timeout=50s"];
    await house.kubectl("delete", "ttsd", "demo", ...wait);
    for (const [kind, name] of children)
      expect([kind, await house.get(kind, name)]).toEqual([kind, undefined]);
    await house.idle();
    expect(house.proxy.count("write")).toBe(writes);
  });

  it("replaces no pod after an upgrade until the settings change", async () => {
    await house.ready();
    await house.stopOperator();
    const before = await house.workload("demo-mist");
    await house.startOperator({ image: "registry.example/svc-tts/server:0.2.0" });
    await house.idle();
    expect((await house.workload("demo-mist")).metadata.generation).toBe(before.metadata.generation);
    expect((await house.deployment()).status?.version).toBe("0.1.0");
    await house.putDeployment({}, [{ name: "mist", kind: "mist", maxConcurrentStreams: 4 }]);
    await house.until(async () => {
      const text = JSON.stringify((await house.workload("demo-mist")).spec);
      return text.includes("server:0.2.0") && text.includes('"value":"4"');
    }, "the rollout");
  });
});
