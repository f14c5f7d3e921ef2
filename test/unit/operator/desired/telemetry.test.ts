import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { ModelSpec } from "../../../../crds/tts-deployment.ts";
import { modelPool } from "../../../../operator/desired/model-pool.ts";
import { monitors } from "../../../../operator/desired/monitors.ts";
import { networkPolicies } from "../../../../operator/desired/network-policy.ts";
import { modelSettings } from "../../../../operator/desired/pods/deployment.ts";
import { telemetrySecrets } from "../../../../operator/desired/pods/telemetry.ts";
import { isAllowed, type Party } from "../../../support/judges/network-policy.ts";
import {
  granted,
  plannedDeployment,
  serverSettings,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const { server } = serverSettings;
const exporter = { endpoint: "https://backend:4317" };

const vllm = { env: [{ name: "SVC_TTS_ARCANA_GENERATOR", value: "vllm" }] };

function poolOf(telemetry: object | undefined, kind: "mist" | "arcana" = "arcana", more: object = {}) {
  const owner = ttsDeployment(telemetry && { telemetry }, [{ name: "voice", kind, ...more }]);
  const { deployment, pool, ...spec } = modelPool(owner, owner.spec.models[0] as ModelSpec, true).spec;
  return ttsModelPool({ ...spec, pool: "voice", deployment: "demo" });
}

function podOf(telemetry: object | undefined, kind: "mist" | "arcana" = "arcana", more: object = {}) {
  const pod = plannedDeployment(poolOf(telemetry, kind, more), undefined, granted, server)?.spec.template
    .spec;
  const [container] = pod?.containers ?? [];
  const variables = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
  const [collector] = pod?.initContainers ?? [];
  const value = collector?.env?.find(({ name }) => name === "COLLECTOR_CONFIG")?.value;
  // Kubernetes replaces `$$` in the value of a variable.
  const config = value && parse(value.replaceAll("$$", "$"));
  return { pod, container, variables, collector, config };
}

describe("the telemetry variables of a model pod", () => {
  it.each([
    ["grpc", "http://127.0.0.1:4317"],
    ["http/protobuf", "http://127.0.0.1:4318"],
    ["http/json", "http://127.0.0.1:4318"],
  ])("select protocol %s and the endpoint %s of the sidecar", (protocol, endpoint) => {
    const { variables } = podOf({ protocol, collector: { enabled: true, exporter } });
    expect(variables).toMatchObject({
      OTEL_COLLECTOR_PROTOCOL: protocol,
      OTEL_COLLECTOR_ENDPOINT: endpoint,
      OTEL_METRIC_EXPORT_INTERVAL: "30000",
      GENERATOR_VLLM_PORT: "8001",
    });
  });

  it("select the given endpoint without a sidecar", () => {
    const { variables, pod } = podOf({ protocol: "http/json", endpoint: "http://otel.ns:4318" });
    expect(variables.OTEL_COLLECTOR_ENDPOINT).toBe("http://otel.ns:4318");
    expect(pod).not.toHaveProperty("initContainers");
  });

  it("contain the resource attributes of the pod and of the spec, percent-encoded", () => {
    const { container, variables } = podOf({
      resourceAttributes: { "deployment.environment.name": "a b,c=$(X)" },
    });
    expect(variables.OTEL_RESOURCE_ATTRIBUTES).toBe(
      "k8s.namespace.name=$(POD_NAMESPACE),k8s.pod.name=$(POD_NAME),service.instance.id=$(POD_NAME),svc.pool=voice,deployment.environment.name=a%20b%2Cc%3D%24(X)",
    );
    const names = container?.env?.map(({ name }) => name) ?? [];
    expect(names.indexOf("POD_NAME")).toBeLessThan(names.indexOf("OTEL_RESOURCE_ATTRIBUTES"));
  });

  it("exist only for arcana, as in the specification", () => {
    const { variables } = podOf({ collector: { enabled: true, exporter } }, "mist");
    expect(Object.keys(variables).filter((name) => /COLLECTOR|VLLM/.test(name))).toEqual([]);
  });

  it("are overridden by spec.env", () => {
    const owner = ttsModelPool({
      kind: "arcana",
      telemetry: { endpoint: "http://a:1" },
      env: [{ name: "OTEL_COLLECTOR_ENDPOINT", value: "http://b:2" }],
    });
    const pod = plannedDeployment(owner, undefined, granted, server)?.spec.template.spec;
    const variables = pod?.containers[0]?.env?.filter(({ name }) => name === "OTEL_COLLECTOR_ENDPOINT");
    expect(variables).toEqual([{ name: "OTEL_COLLECTOR_ENDPOINT", value: "http://b:2" }]);
  });
});

describe("the collector of a pod", () => {
  it("is a native sidecar that complies with Pod Security restricted, without a probe that affects the pod", () => {
    const { collector } = podOf({ collector: { enabled: true, exporter } });
    expect(collector).toMatchObject({
      name: "collector",
      restartPolicy: "Always",
      args: ["--config=env:COLLECTOR_CONFIG"],
      resources: { requests: { cpu: "50m", memory: "96Mi" }, limits: { memory: "256Mi" } },
      securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
    });
    expect(collector).not.toHaveProperty("readinessProbe");
    expect(collector).not.toHaveProperty("startupProbe");
  });

  it("has the pull policy of the operator's settings, unless the TtsDeployment names its image", () => {
    const policyWith = (image?: string) => {
      const telemetry = { collector: { enabled: true, exporter, ...(image && { image }) } };
      const owner = poolOf(telemetry);
      const settings = { ...server, collectorPullPolicy: "Never" } as const;
      const pod = plannedDeployment(owner, undefined, granted, settings)?.spec.template.spec;
      return pod?.initContainers?.find(({ name }) => name === "collector")?.imagePullPolicy;
    };
    expect(policyWith()).toBe("Never");
    expect(policyWith("registry.example/collector:1")).toBeUndefined();
  });

  it("scrapes the pod, and vLLM if it runs in the pod", () => {
    const targets = (kind: "mist" | "arcana", more = {}) =>
      podOf(
        { collector: { enabled: true, exporter } },
        kind,
        more,
      ).config.receivers.prometheus.config.scrape_configs.map(
        (job: { job_name: string; static_configs: { targets: string[] }[] }) => [
          job.job_name,
          ...(job.static_configs[0]?.targets ?? []),
        ],
      );
    expect(targets("mist")).toEqual([["svc-tts-mist", "127.0.0.1:8080"]]);
    expect(targets("arcana")).toEqual([["svc-tts-arcana", "127.0.0.1:8080"]]);
    expect(targets("arcana", vllm)).toEqual([
      ["svc-tts-arcana", "127.0.0.1:8080"],
      ["vllm", "127.0.0.1:8001"],
    ]);
  });

  it("keeps dollar signs in resource attributes", () => {
    const { config } = podOf({
      resourceAttributes: { cost: "$(5) \u0024{env:HOME}" },
      collector: { enabled: true, exporter },
    });
    expect(config.processors.resource.attributes).toContainEqual({
      key: "cost",
      value: "$$(5) $\u0024{env:HOME}",
      action: "upsert",
    });
  });

  it.each([
    ["bearer", { bearer: { secretRef: { name: "creds" } } }, { auth: { authenticator: "bearertokenauth" } }],
    ["basic", { basic: { secretRef: { name: "creds" } } }, { auth: { authenticator: "basicauth/client" } }],
    [
      "oauth2",
      { oauth2: { tokenUrl: "https://idp/token", secretRef: { name: "creds" } } },
      { auth: { authenticator: "oauth2client" } },
    ],
    [
      "headers",
      { headers: [{ name: "api-key", secretRef: { name: "creds", key: "k" } }] },
      { headers: { "api-key": "\u0024{env:COLLECTOR_HEADER_0:-missing}" } },
    ],
  ])(
    "authenticates with %s from a Secret, and the pod starts without this Secret",
    (_what, auth, expected) => {
      const { pod, collector, config } = podOf({ collector: { enabled: true, exporter, auth } });
      expect(config.exporters.otlp_grpc).toMatchObject({ endpoint: exporter.endpoint, ...expected });
      const volume = pod?.volumes?.find(({ name }) => name === "telemetry-auth")?.secret;
      const refs = (collector?.env ?? []).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []);
      const secretSources = [
        ...refs,
        ...(volume ? [{ name: volume.secretName, optional: volume.optional }] : []),
      ];
      expect(secretSources.length).toBeGreaterThan(0);
      for (const secret of secretSources) expect(secret).toMatchObject({ name: "creds", optional: true });
      const telemetry = ttsDeployment({ telemetry: { collector: { enabled: true, exporter, auth } } }).spec
        .telemetry;
      expect(telemetrySecrets(telemetry)).toEqual(["creds"]);
    },
  );

  it("trusts the configured certificate authority, and compresses its data", () => {
    const byHttp = {
      protocol: "http/protobuf",
      endpoint: "https://backend/otlp",
      caSecretRef: { name: "ca" },
    };
    const { pod, config } = podOf({ collector: { enabled: true, exporter: byHttp } });
    expect(config.exporters.otlp_http).toMatchObject({
      endpoint: "https://backend/otlp",
      compression: "gzip",
      tls: { ca_file: "/var/run/svc-tts/telemetry/ca/ca.crt" },
    });
    expect(pod?.volumes).toContainEqual(
      expect.objectContaining({
        secret: expect.objectContaining({ secretName: "ca", items: [{ key: "ca.crt", path: "ca.crt" }] }),
      }),
    );
  });

  it("changes the settings hash of the pods, unlike a ServiceMonitor", () => {
    const settings = (telemetry: object | undefined) => modelSettings(poolOf(telemetry));
    const enabled = { collector: { enabled: true, exporter } };
    expect(settings(enabled)).not.toBe(settings(undefined));
    expect(settings({ ...enabled, collector: { ...enabled.collector, scrapeIntervalSeconds: 60 } })).not.toBe(
      settings(enabled),
    );
    expect(settings({ serviceMonitor: { enabled: true } })).toBe(settings(undefined));
  });

  it.each([
    ["grpc", "http://otel.ns:14317", 14317],
    ["grpc", "http://otel.ns", 4317],
    ["http/json", "http://otel.ns/", 4318],
    ["grpc", "https://otel.example.com", 443],
  ])(
    "is allowed by the network policies for protocol %s and endpoint %s on port %i only",
    (protocol, endpoint, port) => {
      const policies = networkPolicies(
        ttsDeployment({ networkPolicy: { enabled: true }, telemetry: { protocol, endpoint } }),
      );
      const labels = { "tts.svc.dev/deployment": "demo", "app.kubernetes.io/component": "model" };
      const model: Party = { ip: "10.0.0.1", pod: { namespace: "ns", labels } };
      expect(isAllowed(policies, { from: model, to: { ip: "1.2.3.4" }, port })).toBe(true);
      expect(isAllowed(policies, { from: model, to: { ip: "1.2.3.4" }, port: 80 })).toBe(false);
    },
  );

  it("may connect to its backend and token URL with network policies, and Prometheus may scrape vLLM", () => {
    const auth = { oauth2: { tokenUrl: "https://idp:8443/token", secretRef: { name: "creds" } } };
    const policies = networkPolicies(
      ttsDeployment({
        networkPolicy: { enabled: true, metricsFrom: ["monitoring"] },
        telemetry: { collector: { enabled: true, exporter, auth } },
      }),
    );
    const labels = { "tts.svc.dev/deployment": "demo", "app.kubernetes.io/component": "model" };
    const model: Party = { ip: "10.0.0.1", pod: { namespace: "ns", labels } };
    const outside: Party = { ip: "1.2.3.4" };
    const scraper: Party = { ip: "10.0.0.9", pod: { namespace: "monitoring", labels: {} } };
    const may = (from: Party, to: Party, port: number) => isAllowed(policies, { from, to, port });
    expect([4317, 8443, 443, 8080].map((port) => may(model, outside, port))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect([8001, 8080, 13133].map((port) => may(scraper, model, port))).toEqual([true, true, false]);
    expect(may(outside, model, 8001)).toBe(false);
  });
});

describe("the ServiceMonitor and the PodMonitor", () => {
  const monitorsOf = (spec: Record<string, unknown>, kind = "mist", more = {}) =>
    monitors(ttsDeployment(spec, [{ name: "m", kind, ...more }])).map(({ kind, metadata, spec }) => ({
      kind,
      metadata,
      spec,
    }));

  it("exist if the spec enables them, with a PodMonitor for pools that run vLLM", () => {
    const enabled = { telemetry: { serviceMonitor: { enabled: true } } };
    expect(monitorsOf({})).toEqual([]);
    expect(monitorsOf(enabled).map(({ kind }) => kind)).toEqual(["ServiceMonitor"]);
    expect(monitorsOf(enabled, "arcana").map(({ kind }) => kind)).toEqual(["ServiceMonitor"]);
    expect(monitorsOf(enabled, "arcana", vllm).map(({ kind }) => kind)).toEqual([
      "ServiceMonitor",
      "PodMonitor",
    ]);
    const portsOf = (more: object) =>
      podOf(undefined, "arcana", more).container?.ports?.map(({ name }) => name);
    expect(portsOf({})).toEqual(["http"]);
    expect(portsOf(vllm)).toEqual(["http", "vllm"]);
  });

  it("have the labels of the spec and of the operator", () => {
    const labels = { release: "prometheus", "app.kubernetes.io/managed-by": "another" };
    const [monitor] = monitorsOf({
      telemetry: { serviceMonitor: { enabled: true, labels, intervalSeconds: 15 } },
    });
    expect(monitor?.metadata.labels).toMatchObject({
      release: "prometheus",
      "app.kubernetes.io/managed-by": "tts-operator",
    });
    expect(monitor?.spec).toMatchObject({ endpoints: [{ port: "http", interval: "15s" }] });
  });
});
