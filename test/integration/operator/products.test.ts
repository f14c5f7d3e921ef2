/**
 * Tests the operator with and without the CRDs of the Gateway API, KEDA and the Prometheus operator, and the
 * role of the chart.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { rulesOf } from "../../../operator/cluster/permissions.ts";
import type { V1Container } from "../../../operator/facts/kubernetes-object.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds } from "../../support/cluster/kubectl.ts";
import { installForeignKinds, removeForeignKinds } from "../../support/judges/foreign-kinds.ts";
import type { ProxiedRequest } from "../../support/operator/fault-proxy.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

/**
 * A control plane without the CRDs of the products: the first test of each product needs a cluster without
 * the product.
 */
let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ controllerManager: true, prepare: installCrds });
});

afterAll(() => plane.stop());

beforeEach(async () => {
  house = await OperatorHouse.open({}, plane.address);
});

afterEach(() => house[Symbol.asyncDispose]());

type Product = Parameters<typeof installForeignKinds>[1];
const install = (product: Product) => installForeignKinds(plane.address, product);
const hostnames = ["tts.example.com"];

describe("the Ingress of the API", () => {
  it("routes the host names, follows changes of the spec, and is deleted when the spec removes it, while the pods stay", async () => {
    await house.ready({ api: { route: { hostnames, ingress: { tlsSecretName: "tls" } } } });
    const service = await house.mustGet("Service", "demo-api");
    // The paths do not include "/" and /metrics.
    const paths = ["/v1", "/dashboard", "/health", "/openapi.json"].map((path) => ({
      path,
      pathType: "Prefix",
      backend: { service: { name: service.metadata.name, port: { name: "http" } } },
    }));
    expect((await house.mustGet("Ingress", "demo-api")).spec).toMatchObject({
      tls: [{ hosts: hostnames, secretName: "tls" }],
      rules: [{ host: "tts.example.com", http: { paths } }],
    });
    const { generation } = (await house.workload("demo-api")).metadata;
    await house.putDeployment({ api: { route: { hostnames: ["other.example.com"], ingress: {} } } });
    await house.until(async () => {
      const changed = JSON.stringify((await house.mustGet("Ingress", "demo-api")).spec);
      return changed.includes("other.example.com") && !changed.includes("tls");
    }, "the changed Ingress");
    await house.putDeployment();
    await house.untilGone("Ingress", "demo-api");
    expect((await house.workload("demo-api")).metadata.generation).toBe(generation);
  });
});

describe("the HTTPRoute of the API", () => {
  const gatewayRef = { name: "public", namespace: "infra", sectionName: "https" };
  const byGateway = { route: { hostnames, gatewayRef } };
  const route = () => house.get("HTTPRoute", "demo-api");

  it("is not created without the Gateway API: the condition reports it, and all other children are created", async () => {
    await house.ready();
    await house.putDeployment({ api: { ...byGateway, replicas: 2 } });
    await house.untilCondition(
      "Stalled",
      /^True GatewayApiMissing: .*not have the API gateway\.networking\.k8s\.io\/v1\. Install the CRDs of the Gateway API, or use/,
    );
    expect(await house.replicas("demo-api")).toBe(2);
    await house.putDeployment({ api: { replicas: 2 } });
    await house.serve("demo-api");
    await house.untilReady();
  });

  it("is created, repaired, and deleted when the spec removes it, and causes no write if nothing changed", async () => {
    await install("gatewayApi");
    await house.ready({ api: byGateway });
    const created = await house.mustGet("HTTPRoute", "demo-api");
    expect(created.spec).toMatchObject({
      parentRefs: [gatewayRef],
      hostnames,
      rules: [{ backendRefs: [{ name: "demo-api", port: 8000 }], timeouts: { request: "0s" } }],
    });
    expect(await house.writesOfRestart()).toBe(0);
    const drifted = { ...(created.spec as object), hostnames: ["stolen.example.com"] };
    await house.admin.replace({ ...created, spec: drifted });
    await house.until(async () => !JSON.stringify(await route()).includes("stolen"), "the repair");
    await house.remove("HTTPRoute", "demo-api");
    await house.until(
      async () => ((await route())?.metadata.uid ?? created.metadata.uid) !== created.metadata.uid,
      "the recreated HTTPRoute",
    );
    await house.putDeployment({ api: { route: { hostnames, ingress: {} } } });
    await house.untilGone("HTTPRoute", "demo-api");
    await house.mustGet("Ingress", "demo-api");
  });

  it("is deleted by the next operator if the spec removed it while no operator ran", async () => {
    await install("gatewayApi");
    await house.ready({ api: byGateway });
    await house.stopOperator();
    await house.putDeployment();
    await house.startOperator();
    await house.untilGone("HTTPRoute", "demo-api");
  });
});

describe("a pool that KEDA scales", () => {
  const pool = (scaling: object) => ({
    name: "mist",
    kind: "mist",
    scaling: { minReplicas: 1, maxReplicas: 4, ...scaling },
  });

  it("keeps its replicas and reports the missing KEDA until KEDA is installed, and then has a ScaledObject", async () => {
    await house.ready({}, [pool({ provider: "KEDA" })]);
    await house.untilCondition("ScalingReady", /^False KedaMissing/);
    expect(await house.condition("Ready")).toMatch(/^True/);
    expect(await house.replicas("demo-mist")).toBe(1);
    await install("keda");
    await house.untilThere("ScaledObject", "demo-mist");
    const scaledObject = await house.mustGet("ScaledObject", "demo-mist");
    const trigger = {
      url: `http://demo-api.${house.namespace}.svc:8000/metrics`,
      valueLocation: 'svc_tts_pool_streams{pool="mist"}',
      aggregationType: "sum",
    };
    expect(scaledObject.spec).toMatchObject({
      scaleTargetRef: { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsModelPool", name: "demo-mist" },
      minReplicaCount: 1,
      maxReplicaCount: 4,
      triggers: [{ type: "metrics-api", metadata: trigger }],
    });
    const ready = { type: "Ready", status: "True", reason: "ScaledObjectReady", message: "ready" };
    await house.setStatus(scaledObject, { conditions: [ready] });
    await house.untilCondition("ScalingReady", /^True Following/);
    expect(await house.writesDuring(1_500)).toBe(0);
    // In this status, KEDA is ready, and its HorizontalPodAutoscaler cannot read the metric.
    const reason = "FailedGetExternalMetric";
    const failing = { type: "HPAActive", status: "False", reason, message: "no metric" };
    await house.setStatus(await house.mustGet("ScaledObject", "demo-mist"), { conditions: [ready, failing] });
    await house.untilCondition(
      "ScalingReady",
      /^False FailedGetExternalMetric: pool mist: ScaledObject demo-mist: no metric$/,
    );
    await house.putDeployment({}, [pool({})]);
    await house.untilGone("ScaledObject", "demo-mist");
  });

  it("has a ScaledObject after the conflicting HorizontalPodAutoscaler is deleted, and its pods run until then", async () => {
    await install("keda");
    // After the restart, the operator knows the kind ScaledObject.
    await house.restart();
    let rejects = true;
    let rejections = 0;
    const message = 'admission webhook "vscaledobject.kb.io" denied the request: not today';
    const body = { kind: "Status", reason: "Forbidden", code: 403, message };
    house.proxy.rule = ({ method, path }) => {
      if (!rejects || method !== "PATCH" || !path.endsWith("/scaledobjects/demo-mist")) return undefined;
      rejections += 1;
      return { kind: "answer", status: 403, body };
    };
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({}, [pool({ provider: "KEDA" })]);
    await house.until(async () => rejections > 0, "the rejection of the ScaledObject");
    await house.untilThere("Deployment", "demo-mist");
    await house.putDeployment({}, [pool({ provider: "HPA" })]);
    await house.untilThere("HorizontalPodAutoscaler", "demo-mist");
    await house.putDeployment({}, [pool({ provider: "KEDA" })]);
    await house.untilGone("HorizontalPodAutoscaler", "demo-mist");
    rejects = false;
    await house.untilThere("ScaledObject", "demo-mist");
  });
});

describe("monitors for the Prometheus operator", () => {
  const monitored = { telemetry: { serviceMonitor: { enabled: true, labels: { release: "prometheus" } } } };
  const arcana = [{ name: "arcana", kind: "arcana", engine: { type: "vllm" } }];
  const monitorOf = async (kind: "ServiceMonitor" | "PodMonitor") => (await house.get(kind, "demo"))?.spec;

  it("are reported as missing until it is installed, do not make the TtsDeployment unready, and are then created and watched", async () => {
    await house.ready(monitored, arcana);
    expect(await house.condition("TelemetryReady")).toMatch(/^False MonitorsNotInstalled/);
    expect(await house.condition("Ready")).toMatch(/^True/);
    await install("prometheusOperator");
    await house.untilThere("ServiceMonitor", "demo");
    await house.untilCondition("TelemetryReady", /^True/);
    for (const kind of ["ServiceMonitor", "PodMonitor"]) {
      await house.untilThere(kind, "demo");
      await house.remove(kind, "demo");
      await house.untilThere(kind, "demo");
    }
  });

  it("match the schema of the CRDs, and are deleted when the spec disables them", async () => {
    await install("prometheusOperator");
    await house.ready(monitored, arcana);
    expect(await house.condition("TelemetryReady")).toMatch(/^True Configured/);
    expect(await monitorOf("ServiceMonitor")).toMatchObject({
      selector: { matchLabels: { "tts.svc.dev/deployment": "demo" } },
      endpoints: [{ port: "http", path: "/metrics", interval: "30s" }],
    });
    expect(await monitorOf("PodMonitor")).toMatchObject({ podMetricsEndpoints: [{ port: "vllm" }] });
    await house.remove("PodMonitor", "demo");
    await house.untilThere("PodMonitor", "demo");
    await house.putDeployment({}, arcana);
    await house.untilGone("ServiceMonitor", "demo");
    await house.untilGone("PodMonitor", "demo");
  });

  it("are reported as missing when the CRDs are deleted, and the operator continues", async () => {
    await install("prometheusOperator");
    await house.ready(monitored, arcana);
    await removeForeignKinds(plane.address, "prometheusOperator");
    await house.untilCondition("TelemetryReady", /^False MonitorsNotInstalled/);
    await house.ready({ ...monitored, profile: "cloud" }, arcana);
  });
});

describe("the collector sidecar", () => {
  const models = [{ name: "arcana", kind: "arcana", engine: { type: "vllm" } }];
  const exporter = { endpoint: "https://otlp.example.com:4317" };
  const auth = { bearer: { secretRef: { name: "otlp" } } };
  const telemetry = { resourceAttributes: { team: "voice" }, collector: { enabled: true, exporter, auth } };

  it("is in the pod template, and a missing Secret of credentials is reported until it is created", async () => {
    await house.ready({ telemetry }, models);
    const { spec } = await house.workload("demo-arcana");
    const [collector] = (spec?.template.spec?.initContainers ?? []) as V1Container[];
    expect(collector).toMatchObject({ name: "collector", restartPolicy: "Always" });
    expect(await house.condition("TelemetryReady")).toMatch(/^False SecretMissing: .*\/otlp/);
    await house.admin.create({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "otlp", namespace: house.namespace },
      stringData: { token: "s3cret-of-the-backend" },
    });
    await house.untilCondition("TelemetryReady", /^True/);
    expect(JSON.stringify(await house.workload("demo-arcana"))).not.toContain("s3cret-of-the-backend");
  });

  it("is rejected by the CRD if its settings cannot work together", async () => {
    const basic = { secretRef: { name: "b" } };
    const invalid: [object, string][] = [
      [{ ...telemetry, endpoint: "http://c:4317" }, "exclude each other"],
      [{ collector: { enabled: true } }, "is required with telemetry.collector.enabled"],
      [{ collector: { ...telemetry.collector, auth: { ...auth, basic } } }, "must have at most one of"],
      [
        { collector: { ...telemetry.collector, exporter: { endpoint: "http://c:4317" } } },
        "needs an https:// endpoint",
      ],
      [{ endpoint: "collector:4317" }, "must be a URL"],
      [{ resourceAttributes: { "a=b": "c" } }, "names of attributes"],
    ];
    for (const [settings, message] of invalid)
      await expect(house.putDeployment({ telemetry: settings }, models)).rejects.toThrow(message);
  });
});

describe("the chart's role", () => {
  const everything = {
    api: { keys: { secretRef: { name: "license" } }, route: { hostnames, ingress: {} } },
    networkPolicy: { enabled: true },
    telemetry: { serviceMonitor: { enabled: true } },
  };
  /** vLLM serves its own metrics, so the operator creates a PodMonitor. */
  const engine = { type: "vllm" };
  const byGateway = { api: { route: { hostnames, gatewayRef: { name: "public" } } } };
  const nothingMore = { networkPolicy: {}, availability: { podDisruptionBudget: { enabled: false } } };

  beforeAll(async () => {
    for (const product of ["gatewayApi", "keda", "prometheusOperator"] as const) await install(product);
  });

  /**
   * Makes the operator use every permission: it elects a leader, creates all children, deletes optional
   * children and a pool, and records events.
   */
  async function doEverything(house: OperatorHouse): Promise<void> {
    await house.restart({ elected: true });
    const scaling = { maxReplicas: 2 };
    await house.ready(everything, [
      { name: "mist", kind: "mist", scaling: { ...scaling, provider: "HPA" } },
      { name: "second", kind: "arcana", engine, scaling: { ...scaling, provider: "KEDA" } },
    ]);
    for (const kind of ["ServiceMonitor", "PodMonitor"]) await house.mustGet(kind, "demo");
    await house.mustGet("HorizontalPodAutoscaler", "demo-mist");
    await house.mustGet("ScaledObject", "demo-second");
    const withReplicas = (name: string, kind: string) => ({ name, kind, replicas: 1 });
    await house.putDeployment(everything, [withReplicas("mist", "mist"), withReplicas("second", "arcana")]);
    await house.untilGone("HorizontalPodAutoscaler", "demo-mist");
    await house.untilGone("ScaledObject", "demo-second");
    await house.putDeployment(byGateway);
    await house.untilThere("HTTPRoute", "demo-api");
    await house.putDeployment(nothingMore);
    for (const [kind, name] of [
      ["TtsModelPool", "demo-second"],
      ["NetworkPolicy", "demo-api"],
      ["HTTPRoute", "demo-api"],
      ["Ingress", "demo-api"],
      ["ServiceMonitor", "demo"],
      ["PodMonitor", "demo"],
      ["PodDisruptionBudget", "demo-mist"],
    ] as const)
      await house.untilGone(kind, name);
    await changeHistory(house);
    await house.until(async () => {
      const events = await house.admin.list("Event", { namespace: house.namespace });
      return events.some(({ reason }) => reason === "Serving");
    }, "the event");
    expect(house.lines.filter((line) => /forbidden/i.test(line))).toEqual([]);
  }

  /** Makes the operator write, read and delete revisions of a pool. */
  async function changeHistory(house: OperatorHouse): Promise<void> {
    const { namespace } = house;
    const revisions = async () =>
      (await house.admin.list("ControllerRevision", { namespace })).map(({ metadata }) => metadata.name);
    const [first] = await revisions();
    const mist = { name: "mist", kind: "mist", maxConcurrentStreams: 4 };
    await house.putDeployment(nothingMore, [{ ...mist, rollout: { revisionHistoryLimit: 1 } }]);
    await house.until(async () => {
      await house.serve("demo-api", "demo-mist");
      const names = await revisions();
      return names.length === 1 && names[0] !== first;
    }, "the second revision replaces the first one");
    await house.putDeployment(nothingMore, [{ ...mist, rollout: { rollbackTo: "0123456789" } }]);
    await house.untilCondition("Stalled", /RevisionNotFound/);
    await house.putDeployment(nothingMore, [mist]);
  }

  /** Returns the permission that a request needs, as `verb resource` in the terms of RBAC. */
  function permissionOf({ method, path, watch }: ProxiedRequest): string {
    const [, root, ...rest] = path.split("/");
    const parts = rest.slice(root === "api" ? 1 : 2);
    const [resource, name, subresource] = parts[0] === "namespaces" ? parts.slice(2) : parts;
    const writing: Record<string, string> = {
      POST: "create",
      PUT: "update",
      PATCH: "patch",
      DELETE: "delete",
    };
    const reading = name === undefined ? "list" : "get";
    const verb = writing[method] ?? (watch ? "watch" : reading);
    return `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`}`;
  }

  it("allows every request of an operator that watches all namespaces", async () => {
    await using everywhere = await OperatorHouse.open({ clusterWide: true }, plane.address);
    await doEverything(everywhere);
  });

  it("allows every request in the watched namespaces, and grants no unused permission", async () => {
    await doEverything(house);
    // The operator releases its Lease when it stops.
    await house.stopOperator();
    const used = new Set(house.proxy.requests.map(permissionOf));
    // Server-side apply sends a patch, which also needs `create` for objects that do not exist.
    for (const request of [...used])
      if (request.startsWith("patch ")) used.add(request.replace("patch", "create"));
    const granted = [...rulesOf("workload"), ...rulesOf("own")].flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    );
    // model-cache.test.ts uses these permissions under the same role.
    const ofCaches = /^\w+ (jobs|persistentvolumeclaims|ttsmodelcaches)\b/;
    const unused = granted.filter((permission) => !used.has(permission) && !ofCaches.test(permission));
    expect(unused.sort()).toEqual([
      // Only admission checks these permissions, as operator/cluster/permissions.ts explains.
      "get endpointslices",
      "list endpointslices",
      // The scale-down of a pool with streams is tested in test/integration/operator/scaling.test.ts.
      "patch pods",
      "update ttsdeployments/finalizers",
      "update ttsmodelpools/finalizers",
      "watch endpointslices",
    ]);
  });

  it("does not allow the operator to list Secrets", async () => {
    const answer = await fetch(new URL(`/api/v1/namespaces/${house.namespace}/secrets`, house.proxy.server));
    expect(answer.status).toBe(403);
  });

  it("allows the deletion of pools, revisions and optional children only", () => {
    const rules = [...rulesOf("workload"), ...rulesOf("own")];
    const deletable = rules.filter(({ verbs }) => verbs.includes("delete"));
    expect(deletable.flatMap(({ resources }) => resources)).toEqual([
      ...[
        "ttsmodelpools",
        "jobs",
        "controllerrevisions",
        "networkpolicies",
        "ingresses",
        "httproutes",
        "horizontalpodautoscalers",
      ],
      ...["poddisruptionbudgets", "scaledobjects", "servicemonitors", "podmonitors"],
    ]);
  });
});
