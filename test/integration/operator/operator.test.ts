import { afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import type { Deployment } from "../../../operator/observed.ts";
import { installGatewayApi, removeGatewayApi } from "../../support/gateway-api.ts";
import { installCrds, kubectl, kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

let house: OperatorHouse;

beforeAll(() => installCrds(inject("controlPlane")));

beforeEach(async () => {
  house = await OperatorHouse.open();
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
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

async function routing(): Promise<RoutingTable> {
  const { data } = await house.mustGet("ConfigMap", "demo-routing");
  return JSON.parse((data as Record<string, string>)["routing.json"] ?? "");
}

async function replicas(name: string): Promise<number | undefined> {
  const { spec } = ((await house.get("Deployment", name)) ?? {}) as Partial<Deployment>;
  return spec?.replicas;
}

describe("one TtsDeployment", () => {
  it("becomes its children, and ready when their pods are", async () => {
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
    expect((await routing()).models.mistv2).toEqual([
      { pool: "mist", service: "http://demo-mist:8080", weight: 100, idle: false },
    ]);
    const address = inject("controlPlane");
    const table = await kubectlOrThrow(address, ["get", "ttsd", "-n", house.namespace]);
    expect(table).toMatch(/^demo\s+True\s+valid\s+1\/1\s+16\s+0\.1\.0\s+/m);
  });

  it("costs no write at rest, also when it is looked at again", async () => {
    await house.ready();
    await house.settled();
    const writes = house.proxy.count("write");
    const live = await house.deployment();
    await house.admin.replace({ ...live, metadata: { ...live.metadata, annotations: { looked: "at" } } });
    await house.settled(1_500);
    expect(house.proxy.count("write")).toBe(writes);
  });

  it("costs no write at rest with every field set, in forms that the server writes otherwise", async () => {
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
          keys: { secretRef: { name: "license" } },
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
    await house.settled();
    const writes = house.proxy.count("write");
    const live = await house.deployment();
    await house.admin.replace({ ...live, metadata: { ...live.metadata, annotations: { looked: "at" } } });
    await house.settled(1_500);
    expect(house.proxy.count("write")).toBe(writes);
    // nor is anything given up on: see Applier
    await house.stopOperator();
    await house.startOperator();
    await house.settled();
    expect(house.proxy.count("write")).toBe(writes);
  });

  it.each(children)("gets a deleted %s %s back within a second", async (kind, name) => {
    await house.ready();
    await house.settled();
    const before = await house.mustGet(kind, name);
    const start = performance.now();
    await house.remove(kind, name);
    await house.until(async () => {
      const now = await house.get(kind, name);
      return now !== undefined && now.metadata.uid !== before.metadata.uid;
    }, "the child");
    expect(performance.now() - start).toBeLessThan(1_000);
  });

  it("keeps its internal token when the Secret is deleted and when the operator starts again", async () => {
    await house.ready();
    const { data } = await house.mustGet("Secret", "demo-token");
    const uid = (await house.mustGet("Secret", "demo-token")).metadata.uid;
    await house.remove("Secret", "demo-token");
    await house.until(async () => {
      const now = await house.get("Secret", "demo-token");
      return now !== undefined && now.metadata.uid !== uid;
    }, "the token");
    await house.stopOperator();
    await house.startOperator();
    await house.settled();
    expect((await house.mustGet("Secret", "demo-token")).data).toEqual(data);
    expect(house.lines.join("\n")).not.toContain(String((data as Record<string, string>).token));
  });

  it.each([
    ["nothing", {}],
    ["a token that nobody takes", { token: "bm9uZQ==", accepted: "bm9ib2R5" }],
  ])("gets its internal token back, the same, when somebody leaves %s in the Secret", async (_what, left) => {
    await house.ready();
    const secret = await house.mustGet("Secret", "demo-token");
    await house.admin.replace({ ...secret, data: left });
    await house.until(async () => {
      const { data } = await house.mustGet("Secret", "demo-token");
      return JSON.stringify(data) === JSON.stringify(secret.data);
    }, "the token");
  });

  it("has its drift repaired", async () => {
    await house.ready();
    const service = await house.mustGet("Service", "demo-mist");
    await house.admin.replace({
      ...service,
      spec: { ...(service.spec as object), selector: { stolen: "yes" } },
    });
    await house.until(async () => {
      const { spec } = await house.mustGet("Service", "demo-mist");
      return JSON.stringify(spec).includes("tts.svc.dev/pool") && !JSON.stringify(spec).includes("stolen");
    }, "the selector");
  });

  it("tells of changes in events, for `kubectl describe`", async () => {
    await house.ready();
    await house.until(async () => {
      const events = await house.admin.list("Event", { namespace: house.namespace });
      return events.some((event) => event.reason === "Serving" && event.type === "Normal");
    }, "the event");
  });
});

describe("pools", () => {
  it("are scaled by kubectl where the spec names no replicas, and counted", async () => {
    await house.ready();
    const address = inject("controlPlane");
    await kubectlOrThrow(address, ["scale", "-n", house.namespace, "ttsmp/demo-mist", "--replicas=3"]);
    await house.until(async () => (await replicas("demo-mist")) === 3, "three replicas");
    await house.until(async () => (await house.condition("Ready")).startsWith("False"), "not ready");
    await house.serve("demo-mist");
    await house.until(async () => (await house.deployment()).status?.summary.streams === "48", "48 streams");
    expect(await house.condition("Ready")).toMatch(/^True/);
  });

  it("are held to the spec's replicas where it names some", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 2 }]);
    const address = inject("controlPlane");
    await kubectlOrThrow(address, ["scale", "-n", house.namespace, "ttsmp/demo-mist", "--replicas=5"]);
    await house.until(async () => (await house.pool("demo-mist")).spec.replicas === 2, "two replicas");
    expect(await replicas("demo-mist")).toBe(2);
  });

  it("keep their replicas, without a dip, when the spec hands them over, and follow kubectl scale from then on", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 3 }]);
    await house.putDeployment({}, [{ name: "mist", kind: "mist", maxConcurrentStreams: 8 }]);
    await house.until(
      async () => (await house.pool("demo-mist")).spec.maxConcurrentStreams === 8,
      "the new settings",
    );
    await house.settled();
    const { metadata, spec } = await house.pool("demo-mist");
    expect(spec.replicas).toBe(3);
    expect(await replicas("demo-mist")).toBe(3);
    // two writes of the pool: the handing over, and the new settings
    expect(metadata.generation).toBe(2);
    const address = inject("controlPlane");
    await kubectlOrThrow(address, ["scale", "-n", house.namespace, "ttsmp/demo-mist", "--replicas=5"]);
    await house.until(async () => (await replicas("demo-mist")) === 5, "five replicas");
    await house.putDeployment({}, [{ name: "mist", kind: "mist", replicas: 2 }]);
    await house.until(async () => (await replicas("demo-mist")) === 2, "two replicas");
  });

  it("at zero are idle and ready", async () => {
    await house.ready({}, [{ name: "mist", kind: "mist", replicas: 0 }]);
    expect((await routing()).models.mist).toMatchObject([{ pool: "mist", idle: true }]);
  });

  it("that leave the spec are pruned, with their route gone first", async () => {
    await house.ready({}, [
      { name: "mist", kind: "mist" },
      { name: "second", kind: "mist" },
    ]);
    await house.putDeployment();
    await house.until(
      async () => (await house.get("TtsModelPool", "demo-second")) === undefined,
      "the end of it",
    );
    expect((await routing()).models.mist).toMatchObject([{ pool: "mist" }]);
    const writes = house.proxy.requests.filter(({ method }) => method === "PATCH" || method === "DELETE");
    const removal = writes.findIndex(
      ({ method, path }) => method === "DELETE" && path.endsWith("demo-second"),
    );
    const lastRoute = writes.findLastIndex(({ path }) => path.endsWith("demo-routing"));
    expect(lastRoute).toBeLessThan(removal);
  });

  it("take no new requests before a sibling of theirs has a ready pod", async () => {
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({}, [
      { name: "mist", kind: "mist" },
      { name: "second", kind: "mist" },
    ]);
    await house.serve("demo-second");
    await house.until(async () => {
      const routes = (await routing()).models.mist ?? [];
      return routes.map(({ pool, weight }) => `${pool} ${weight}`).join() === "mist 0,second 100";
    }, "the weights");
  });
});

/** What admission says to a pod of this Deployment's template, in a namespace that enforces Pod Security `restricted`. */
async function admittedUnderRestricted(name: string) {
  const address = inject("controlPlane");
  const enforce = "pod-security.kubernetes.io/enforce=restricted";
  await kubectlOrThrow(address, ["label", "namespace", house.namespace, enforce, "--overwrite"]);
  const { spec } = await house.workload(name);
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { generateName: `${name}-`, namespace: house.namespace },
    spec: spec?.template.spec,
  };
  return kubectl(address, ["create", "--dry-run=server", "-f", "-"], JSON.stringify(pod));
}

describe("podTemplate", () => {
  const override = {
    metadata: { labels: { team: "speech" } },
    spec: {
      affinity: { nodeAffinity: {} },
      hostAliases: [{ ip: "10.0.0.1", hostnames: ["registry"] }],
      securityContext: { $patch: "replace", runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        { name: "mist", env: [{ name: "POD_NAME", $patch: "delete" }] },
        { name: "proxy", image: "registry.example/proxy:1" },
      ],
    },
  };

  it("has the last word on pods, and costs no write at rest", async () => {
    const api = {
      podTemplate: { spec: { terminationGracePeriodSeconds: 7, containers: [{ name: "api", tty: true }] } },
    };
    await house.ready({ api }, [{ name: "mist", kind: "mist", podTemplate: override }]);
    const { template } = (await house.workload("demo-mist")).spec ?? {};
    expect(template).toMatchObject({
      metadata: { labels: { team: "speech", "tts.svc.dev/pool": "mist" } },
      spec: { hostAliases: [{ ip: "10.0.0.1" }], containers: [{ name: "mist" }, { name: "proxy" }] },
    });
    expect(template?.spec?.securityContext).not.toHaveProperty("runAsUser");
    expect(JSON.stringify(template)).not.toContain('"POD_NAME"');
    expect((await house.workload("demo-api")).spec?.template.spec).toMatchObject({
      terminationGracePeriodSeconds: 7,
      containers: [{ name: "api", tty: true }],
    });
    await house.settled();
    const writes = house.proxy.count("write");
    await house.stopOperator();
    await house.startOperator();
    await house.settled();
    expect(house.proxy.count("write")).toBe(writes);
  });

  it("means null as kubectl does, through the pool too", async () => {
    const withoutProbe = { spec: { containers: [{ name: "mist", startupProbe: null }] } };
    await house.ready({}, [{ name: "mist", kind: "mist", podTemplate: withoutProbe }]);
    const [container] = (await house.workload("demo-mist")).spec?.template.spec?.containers ?? [];
    expect(container).not.toHaveProperty("startupProbe");
    expect(container).toHaveProperty("livenessProbe");
  });

  it.each([
    [
      "cannot be merged",
      { spec: { containers: [{ image: "x" }] } },
      /PodTemplateInvalid: .*models\[mist\]\.podTemplate\.spec\.containers\[0\] has no name/,
    ],
    [
      "the API server refuses",
      { spec: { terminationGracePeriodSeconds: -1 } },
      /Invalid: .*terminationGracePeriodSeconds/,
    ],
    ["names a field that pods do not have", { spec: { hostNmae: "x" } }, /Invalid: .*hostNmae/],
  ])("that %s is told, and the pods stay as they are", async (_what, podTemplate, message) => {
    await house.ready();
    const { generation } = (await house.workload("demo-mist")).metadata;
    await house.putDeployment({}, [{ name: "mist", kind: "mist", podTemplate }]);
    await house.until(async () => message.test(await house.condition("ModelsReady")), "the reason");
    expect(await house.condition("Stalled")).toMatch(/^True/);
    expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
    await house.putDeployment();
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready again");
  });

  it("of the API that cannot be merged is told too", async () => {
    await house.ready();
    await house.putDeployment({
      api: { podTemplate: { spec: { containers: [{ name: "api", $patch: "delete" }] } } },
    });
    await house.until(
      async () => (await house.condition("Stalled")).startsWith("True PodTemplateInvalid: api.podTemplate"),
      "the reason",
    );
  });
});

describe("the route", () => {
  it("leads host names to the API, follows the spec, and goes with it; pods stay", async () => {
    await house.ready({
      api: { route: { hostnames: ["tts.example.com"], ingress: { tlsSecretName: "tls" } } },
    });
    const service = await house.mustGet("Service", "demo-api");
    const { spec } = await house.mustGet("Ingress", "demo-api");
    expect(spec).toMatchObject({
      tls: [{ hosts: ["tts.example.com"], secretName: "tls" }],
      rules: [
        {
          host: "tts.example.com",
          http: {
            paths: [
              {
                path: "/",
                pathType: "Prefix",
                backend: { service: { name: service.metadata.name, port: { name: "http" } } },
              },
            ],
          },
        },
      ],
    });
    const { generation } = (await house.workload("demo-api")).metadata;
    await house.putDeployment({ api: { route: { hostnames: ["other.example.com"], ingress: {} } } });
    await house.until(async () => {
      const changed = JSON.stringify((await house.mustGet("Ingress", "demo-api")).spec);
      return changed.includes("other.example.com") && !changed.includes("tls");
    }, "the other name");
    await house.putDeployment();
    await house.until(async () => (await house.get("Ingress", "demo-api")) === undefined, "the end of it");
    expect((await house.workload("demo-api")).metadata.generation).toBe(generation);
  });
});

describe("the route by a Gateway", () => {
  const gatewayRef = { name: "public", namespace: "infra", sectionName: "https" };
  const api = { route: { hostnames: ["tts.example.com"], gatewayRef } };
  const route = () => house.get("HTTPRoute", "demo-api");

  afterEach(() => removeGatewayApi(inject("controlPlane")));

  it("joins it, is repaired, costs no write at rest, and goes when the spec has another", async () => {
    await installGatewayApi(inject("controlPlane"));
    await house.ready({ api });
    const made = await house.mustGet("HTTPRoute", "demo-api");
    expect(made.spec).toMatchObject({
      parentRefs: [{ name: "public", namespace: "infra", sectionName: "https" }],
      hostnames: ["tts.example.com"],
      rules: [{ backendRefs: [{ name: "demo-api", port: 8000 }], timeouts: { request: "0s" } }],
    });
    await house.settled();
    const writes = house.proxy.count("write");
    await house.stopOperator();
    await house.startOperator();
    await house.settled();
    expect(house.proxy.count("write")).toBe(writes);
    await house.admin.replace({
      ...made,
      spec: { ...(made.spec as object), hostnames: ["stolen.example.com"] },
    });
    await house.until(async () => !JSON.stringify(await route()).includes("stolen"), "the repair");
    await house.remove("HTTPRoute", "demo-api");
    await house.until(
      async () => ((await route())?.metadata.uid ?? made.metadata.uid) !== made.metadata.uid,
      "it again",
    );
    await house.putDeployment({ api: { route: { hostnames: ["tts.example.com"], ingress: {} } } });
    await house.until(async () => (await route()) === undefined, "its end");
    await house.mustGet("Ingress", "demo-api");
  });

  it("that was given up while no operator ran is taken back by the next", async () => {
    await installGatewayApi(inject("controlPlane"));
    await house.ready({ api });
    await house.stopOperator();
    await house.putDeployment();
    await house.startOperator();
    await house.until(async () => (await route()) === undefined, "its end");
  });

  it("says what to install where the cluster has no Gateway API, and everything else is made", async () => {
    await house.ready();
    await house.putDeployment({ api: { ...api, replicas: 2 } });
    const stalled = async () => house.condition("Stalled");
    await house.until(async () => (await stalled()).startsWith("True GatewayApiMissing"), "the reason");
    expect(await stalled()).toMatch(
      /no gateway\.networking\.k8s\.io\/v1\. Install the CRDs of the Gateway API, or use/,
    );
    expect(await replicas("demo-api")).toBe(2);
    await house.putDeployment({ api: { replicas: 2 } });
    await house.serve("demo-api");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  });
});

describe("safety", () => {
  it("makes budgets and policies where they are asked for, and takes them back when they are not", async () => {
    const children = [
      ["PodDisruptionBudget", "demo-api"],
      ["PodDisruptionBudget", "demo-mist"],
      ["NetworkPolicy", "demo-api"],
      ["NetworkPolicy", "demo-model"],
    ] as const;
    await house.ready({ networkPolicy: { enabled: true } });
    for (const [kind, name] of children) await house.mustGet(kind, name);
    const generation = (await house.workload("demo-mist")).metadata.generation;
    await house.putDeployment({ availability: { podDisruptionBudget: { enabled: false } } });
    for (const [kind, name] of children)
      await house.until(
        async () => (await house.get(kind, name)) === undefined,
        `the end of ${kind} ${name}`,
      );
    await house.settled();
    expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
  });

  it("keeps a policy of somebody else, even one that is labelled like ours", async () => {
    const metadata = {
      name: "theirs",
      namespace: house.namespace,
      labels: { "tts.svc.dev/deployment": "demo", "app.kubernetes.io/managed-by": "tts-operator" },
    };
    const spec = { podSelector: {}, policyTypes: ["Ingress"] };
    await house.admin.create({ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata, spec });
    await house.ready();
    await house.settled();
    await house.mustGet("NetworkPolicy", "theirs");
  });

  it("lets its pods into a namespace that enforces `restricted`, whatever devices they ask for", async () => {
    await house.ready({}, [
      { name: "plain", kind: "mist" },
      { name: "gpu", kind: "mist", accelerator: {}, sharedMemory: "1Gi" },
      { name: "claimed", kind: "mist", accelerator: { claimTemplateName: "gpus" } },
      { name: "fetched", kind: "mist", cache: { emptyDir: {}, sources: [{ url: "hf://o/r" }] } },
      { name: "image", kind: "mist", cache: { imageVolume: { reference: "registry.example/model:1" } } },
    ]);
    for (const name of ["api", "plain", "gpu", "claimed", "fetched", "image"].map((pool) => `demo-${pool}`)) {
      expect(await admittedUnderRestricted(name)).toMatchObject({ code: 0, stderr: "" });
    }
  });
});

describe("the license", () => {
  it("that is missing starts no pod, says so, and is noticed when it comes", async () => {
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False Missing"),
      "Missing",
    );
    await house.settled();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
    expect(await house.get("Deployment", "demo-mist")).toBeUndefined();
    expect(await house.condition("LicenseValid")).toContain(
      `Secret ${house.namespace}/license, key license.jwt`,
    );
    expect(await house.condition("Ready")).toMatch(/^False LicenseMissing/);
    expect(await house.condition("Stalled")).toMatch(/^True LicenseMissing/);
    await house.putLicense(await house.issuer.issue());
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  });

  it("that is forged starts no pod", async () => {
    const [head, , signature] = (await house.issuer.issue()).split(".");
    const claims = Buffer.from(JSON.stringify({ sub: "me" })).toString("base64url");
    await house.putLicense(`${head}.${claims}.${signature}`);
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False Invalid"),
      "Invalid",
    );
    await house.settled();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
  });

  it("that expires while serving counts down its grace, then holds rollouts and scale-ups but no pod", async () => {
    const exp = Math.floor(Date.now() / 1000) + 5;
    await house.putLicense(await house.issuer.issue({ exp, graceDays: 5 / 86_400 }));
    await house.putDeployment();
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");

    await house.until(async () => (await house.deployment()).status?.license.state === "grace", "grace");
    expect(await house.condition("LicenseValid")).toMatch(/^False Expired: .*serving goes on until/);
    expect(await house.condition("Ready")).toMatch(/^True/);

    await house.until(async () => (await house.deployment()).status?.license.state === "expired", "expired");
    await house.putDeployment({ api: { replicas: 3 } }, [
      { name: "mist", kind: "mist", replicas: 4, env: [{ name: "NEW", value: "1" }] },
    ]);
    await house.until(
      async () => (await house.deployment()).status?.observedGeneration === 2,
      "the new generation",
    );
    await house.settled();
    expect(await replicas("demo-api")).toBe(1);
    expect(await replicas("demo-mist")).toBe(1);
    expect(JSON.stringify((await house.workload("demo-mist")).spec)).not.toContain("NEW");
    expect(await house.condition("Ready")).toMatch(/^False LicenseExpired/);
    const held = async () => (await house.condition("RolloutHealthy")).startsWith("False LicenseHold");
    await house.until(held, "the hold");

    await house.putLicense(await house.issuer.issue());
    await house.until(async () => (await replicas("demo-mist")) === 4, "the scale-up");
    expect(JSON.stringify((await house.workload("demo-mist")).spec)).toContain("NEW");
    await house.until(async () => (await replicas("demo-api")) === 3, "the API's");
  });

  it("that vanishes while serving starts its grace, which API pods are told of", async () => {
    await house.ready();
    await house.remove("Secret", "license");
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False Missing"),
      "Missing",
    );
    const { status } = await house.deployment();
    expect(status?.license.state).toBe("grace");
    expect(Date.now() - Date.parse(status?.license.failedAt ?? "")).toBeLessThan(10_000);
    await house.until(async () => (await routing()).licenseFailedAt !== undefined, "the routing table");
    expect(await house.condition("Ready")).toMatch(/^True/);
    await house.settled();
    const failedAt = (await house.deployment()).status?.license.failedAt;
    await house.putLicense(await house.issuer.issue());
    await house.until(async () => (await house.condition("LicenseValid")).startsWith("True"), "Valid");
    expect(failedAt).toBe(status?.license.failedAt);
    expect((await routing()).licenseFailedAt).toBeUndefined();
  });

  it("that does not cover a model keeps that pool alone from starting", async () => {
    await house.putLicense(await house.issuer.issue({ models: ["mist", "mistv2"] }));
    await house.putDeployment({}, [
      { name: "mist", kind: "mist" },
      { name: "arcana", kind: "arcana" },
    ]);
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.deployment()).status?.summary.models === "1/2", "one of two");
    expect(await house.condition("LicenseValid")).toMatch(/^False ModelNotLicensed: .*arcana \(arcana\)/);
    const held = async () =>
      (await house.condition("ModelsReady")).startsWith("False LicenseHold: pool arcana");
    await house.until(held, "the hold");
    expect(await house.get("Deployment", "demo-arcana")).toBeUndefined();
  });

  it("that allows fewer GPUs than are asked for lets as many run as it allows", async () => {
    await house.putLicense(await house.issuer.issue({ maxGpus: 3 }));
    await house.putDeployment({}, [
      { name: "arcana", kind: "arcana", replicas: 2, accelerator: { count: 2 } },
    ]);
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False TooManyGpus"),
      "TooManyGpus",
    );
    expect(await house.condition("LicenseValid")).toContain("allows 3 GPUs and 4 are asked for");
    await house.until(async () => (await replicas("demo-arcana")) === 1, "one replica");
  });

  it("that allows fewer streams holds back a scale-up at once", async () => {
    await house.putLicense(await house.issuer.issue({ maxStreams: 40 }));
    await house.putDeployment();
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
    const address = inject("controlPlane");
    await kubectlOrThrow(address, ["scale", "-n", house.namespace, "ttsmp/demo-mist", "--replicas=3"]);
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False TooManyStreams"),
      "TooManyStreams",
    );
    await house.settled();
    expect(await replicas("demo-mist")).toBe(2);
  });
});

describe("what goes wrong with pods", () => {
  async function podOf(pool: string, status: object): Promise<void> {
    const metadata = {
      name: `demo-${pool}-abc`,
      namespace: house.namespace,
      labels: { "tts.svc.dev/deployment": "demo", "tts.svc.dev/pool": pool },
    };
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata,
      spec: { containers: [{ name: "mist", image: "i:1" }] },
    };
    await house.setStatus(await house.admin.create(pod), { ...status });
  }

  const container = {
    name: "mist",
    image: "registry.example/tts:9",
    imageID: "",
    ready: false,
    restartCount: 4,
  };

  it.each([
    [
      "an image that cannot be pulled",
      {
        containerStatuses: [
          { ...container, state: { waiting: { reason: "ImagePullBackOff", message: "not found" } } },
        ],
      },
      /^False ImagePullFailed: pool mist: .*registry.example\/tts:9.*not found.*imagePullSecrets/,
    ],
    [
      "a crash loop",
      {
        containerStatuses: [
          {
            ...container,
            state: { waiting: { reason: "CrashLoopBackOff" } },
            lastState: { terminated: { exitCode: 3, reason: "Error" } },
          },
        ],
      },
      /^False CrashLoop: pool mist: Container mist of pod demo-mist-abc ended with exit code 3, 4 times/,
    ],
    [
      "too little GPU",
      {
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
          },
        ],
      },
      /^False NoGpu: pool mist: .*0\/1 nodes are available: 1 Insufficient nvidia.com\/gpu/,
    ],
    [
      "no fitting node",
      {
        conditions: [
          {
            type: "PodScheduled",
            status: "False",
            reason: "Unschedulable",
            message: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
          },
        ],
      },
      /^False Unschedulable: pool mist: .*node affinity\/selector/,
    ],
  ])("%s is in the conditions at once", async (_what, status, expected) => {
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.until(async () => (await house.get("Deployment", "demo-mist")) !== undefined, "the pool");
    await podOf("mist", status);
    await house.until(async () => expected.test(await house.condition("ModelsReady")), String(expected));
    expect(await house.condition("Ready")).toMatch(/^False/);
  });

  it.each([
    [
      "ReplicaFailure",
      "True",
      'pods "x" is forbidden: exceeded quota: small',
      /^False QuotaExceeded: .*exceeded quota/,
    ],
    ["Progressing", "False", "no progress", /^False ProgressDeadlineExceeded: .*900 seconds/],
  ])("a Deployment's %s=%s is in the conditions", async (type, status, message, expected) => {
    await house.ready();
    const live = await house.workload("demo-mist");
    const reason = type === "Progressing" ? "ProgressDeadlineExceeded" : "FailedCreate";
    await house.setStatus(live, {
      observedGeneration: live.metadata.generation,
      replicas: 1,
      conditions: [{ type, status, reason, message }],
    });
    await house.until(async () => expected.test(await house.condition("ModelsReady")), String(expected));
  });

  it("keys that are missing are named, and noticed when they come", async () => {
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({ api: { keys: { secretRef: { name: "keys" } } } });
    await house.serve("demo-api", "demo-mist");
    await house.until(
      async () => (await house.condition("ApiReady")).startsWith("False KeysSecretMissing"),
      "it",
    );
    expect(await house.condition("ApiReady")).toContain(`${house.namespace}/keys`);
    const metadata = { name: "keys", namespace: house.namespace };
    await house.admin.create({
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      stringData: { "keys.yaml": "keys: []" },
    });
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  });
});

describe("the operator", () => {
  it("never takes over an object of somebody else", async () => {
    const metadata = { name: "demo-mist", namespace: house.namespace };
    const foreign = { apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 1 }] } };
    const before = await house.admin.create(foreign);
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("Stalled")).startsWith("True NameTaken"),
      "NameTaken",
    );
    expect(await house.condition("Stalled")).toContain(`Service ${house.namespace}/demo-mist`);
    expect((await house.mustGet("Service", "demo-mist")).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
  });

  it("starts no pod under a ServiceAccount of somebody else", async () => {
    const metadata = { name: "demo-api", namespace: house.namespace };
    await house.admin.create({ apiVersion: "v1", kind: "ServiceAccount", metadata });
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("Stalled")).startsWith("True NameTaken"),
      "NameTaken",
    );
    await house.settled();
    expect(await house.condition("Stalled")).toContain(`ServiceAccount ${house.namespace}/demo-api`);
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
  });

  it("keeps apart two TtsDeployments whose children would have one name", async () => {
    await house.ready({ api: { replicas: 2 } }, [
      { name: "b-c", kind: "mist" },
      { name: "b-api", kind: "mist" },
    ]);
    const names = ["demo-b-c", "demo-b-api"];
    const before = await Promise.all(names.map((name) => house.workload(name)));
    const { spec } = await house.deployment();
    await house.admin.create({
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsDeployment",
      metadata: { name: "demo-b", namespace: house.namespace },
      spec: { ...spec, api: { replicas: 1 }, models: [{ name: "c", kind: "mist" }] },
    });
    await house.until(
      async () => (await house.condition("Stalled", "demo-b")).startsWith("True NameTaken"),
      "NameTaken",
    );
    await house.settled();
    expect(await house.condition("Stalled", "demo-b")).toContain("belongs to Tts");
    expect(await house.condition("ApiReady", "demo-b")).toMatch(/^False/);
    expect(await house.condition("Ready")).toMatch(/^True/);
    const after = await Promise.all(names.map((name) => house.workload(name)));
    expect(after.map(({ metadata }) => metadata.generation)).toEqual(
      before.map(({ metadata }) => metadata.generation),
    );
  });

  it("leaves everything alone while suspended, also what drifts", async () => {
    await house.ready();
    await house.putDeployment({ suspend: true });
    await house.until(
      async () => (await house.condition("Reconciling")).startsWith("False Suspended"),
      "Suspended",
    );
    await house.settled();
    const writes = house.proxy.count("write");
    await house.remove("Service", "demo-mist");
    await house.remove("Service", "demo-api");
    await house.settled(1_500);
    expect(house.proxy.count("write")).toBe(writes);
    await house.putDeployment({ suspend: false });
    await house.until(async () => (await house.get("Service", "demo-mist")) !== undefined, "the Service");
  });

  it("recreates nothing in a foreground deletion", async () => {
    await house.ready();
    await house.settled();
    const writes = house.proxy.count("write");
    const address = inject("controlPlane");
    // the garbage collector looks for new kinds every 30 seconds
    const wait = ["--cascade=foreground", "--timeout=50s"];
    await kubectlOrThrow(address, ["delete", "ttsd", "demo", "-n", house.namespace, ...wait]);
    for (const [kind, name] of children)
      expect([kind, await house.get(kind, name)]).toEqual([kind, undefined]);
    await house.settled();
    expect(house.proxy.count("write")).toBe(writes);
  });

  it("rolls nothing when it is upgraded, until the settings change", async () => {
    await house.ready();
    await house.stopOperator();
    const before = await house.workload("demo-mist");
    await house.startOperator({ image: "registry.example/svc-tts/server:0.2.0" });
    await house.settled();
    expect((await house.workload("demo-mist")).metadata.generation).toBe(before.metadata.generation);
    expect((await house.deployment()).status?.version).toBe("0.1.0");
    await house.putDeployment({}, [{ name: "mist", kind: "mist", maxConcurrentStreams: 4 }]);
    await house.until(async () => {
      const text = JSON.stringify((await house.workload("demo-mist")).spec);
      return text.includes("server:0.2.0") && text.includes('"value":"4"');
    }, "the rollout");
  });

  it("says what the API server refused, and goes on when it no longer does", async () => {
    house.proxy.rule = ({ method, path }) =>
      method === "PATCH" && path.endsWith("/services/demo-api")
        ? {
            kind: "answer",
            status: 403,
            body: { kind: "Status", reason: "Forbidden", message: "exceeded quota: services" },
          }
        : undefined;
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("Ready")).startsWith("False QuotaExceeded"),
      "QuotaExceeded",
    );
    expect(await house.condition("Ready")).toContain("exceeded quota: services");
    house.proxy.rule = () => undefined;
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  });
});
