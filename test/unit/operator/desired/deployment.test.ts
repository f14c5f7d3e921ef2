import { describe, expect, it } from "vitest";
import { Env } from "../../../../crds/fields.ts";
import { modelPool, withDesiredSpec } from "../../../../operator/desired/model-pool.ts";
import { apiDeployment, apiSettings, modelSettings } from "../../../../operator/desired/pods/deployment.ts";
import type { Deployment } from "../../../../operator/facts/observed.ts";
import {
  granted,
  plannedDeployment,
  running,
  serverSettings,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const { server } = serverSettings;
const held = { held: true, replicas: 1 };

function model(spec: object = {}, image = "server:1", live?: Deployment, grant = granted) {
  const child = plannedDeployment(ttsModelPool({ ...spec }), live, grant, { ...server, image });
  if (child === undefined) throw new Error("no Deployment was rendered");
  return child;
}

function podOf(child: ReturnType<typeof model>) {
  const spec = child.spec.template.spec;
  const [container] = spec?.containers ?? [];
  if (!spec || !container) throw new Error("no pod was rendered");
  return { spec, container, env: new Map(container.env?.map(({ name, value }) => [name, value])) };
}

describe("the pods of a model", () => {
  it("run the tier of their kind, with probes on the routes of specification 4.6", () => {
    const mist = podOf(model()).container;
    expect(mist).toMatchObject({
      name: "mist",
      image: "server:1",
      args: ["mist"],
      ports: [{ name: "http", containerPort: 8080 }],
      startupProbe: { httpGet: { path: "/ping", port: "http" }, failureThreshold: 300 },
      livenessProbe: { httpGet: { path: "/ping" }, terminationGracePeriodSeconds: 10 },
      readinessProbe: { httpGet: { path: "/ready" } },
    });
    const arcana = podOf(model({ kind: "arcana" })).container;
    expect(arcana).toMatchObject({ args: ["arcana"], livenessProbe: { httpGet: { path: "/readyz" } } });
  });

  it("have a termination grace period of the endpoint delay, the stream time and a margin", () => {
    const drain = { maxStreamSeconds: 600, endpointDelaySeconds: 7 };
    const { spec, container, env } = podOf(model({ drain }));
    expect(container.lifecycle).toEqual({ preStop: { sleep: { seconds: 7 } } });
    expect(spec.terminationGracePeriodSeconds).toBe(7 + 600 + 15);
    expect(env.get("SVC_TTS_DRAIN_SECONDS")).toBe("600");
  });

  it("get no operator variable that spec.env accepts too, because an apply rejects duplicates", () => {
    const rules = JSON.stringify(Env.items);
    expect([...podOf(model()).env.keys()].filter((name) => !rules.includes(`'${name}'`))).toEqual([]);
  });

  it("comply with Pod Security restricted, and mount no token of their ServiceAccount", () => {
    const { spec, container } = podOf(model());
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      serviceAccountName: "demo-model",
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  });

  it("set no user, group and fsGroup on a cluster that assigns them", () => {
    const assigned = { ...server, fixedUserIds: false };
    for (const child of [
      plannedDeployment(ttsModelPool(), undefined, granted, assigned),
      apiDeployment(ttsDeployment(), undefined, granted, assigned),
    ])
      expect(child?.spec.template.spec?.securityContext).toEqual({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
  });

  it("have the user IDs and the pull policy of the spec, also with an image of the user", () => {
    const spec = { fixedUserIds: false, imagePullPolicy: "Always" };
    const pool = modelPool(ttsDeployment(spec), ttsDeployment().spec.models[0] as never, true);
    expect(pool.spec).toMatchObject(spec);
    for (const child of [
      model(spec),
      model({ ...spec, image: "mine:1" }),
      apiDeployment(ttsDeployment(spec), undefined, granted, server),
      apiDeployment(ttsDeployment({ ...spec, api: { image: "mine:1" } }), undefined, granted, server),
    ]) {
      expect(child?.spec.template.spec?.securityContext).not.toHaveProperty("runAsUser");
      expect(child?.spec.template.spec?.containers[0]?.imagePullPolicy).toBe("Always");
    }
    expect(apiSettings(ttsDeployment(spec))).not.toBe(apiSettings(ttsDeployment()));
  });

  it("request their GPU, and tolerate its taint", () => {
    const accelerator = {
      count: 2,
      nodeSelector: { pool: "gpu" },
      tolerations: [{ key: "mine", operator: "Exists" }],
      runtimeClassName: "nvidia",
    };
    const { spec, container } = podOf(model({ accelerator, resources: { limits: { memory: "8Gi" } } }));
    expect(container.resources).toEqual({ limits: { memory: "8Gi", "nvidia.com/gpu": "2" } });
    expect(spec).toMatchObject({ nodeSelector: { pool: "gpu" }, runtimeClassName: "nvidia" });
    expect(spec.tolerations).toEqual([
      { key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" },
      { key: "mine", operator: "Exists" },
    ]);
    expect(podOf(model()).spec.tolerations).toBeUndefined();
  });

  it("request MIG slices instead of whole devices, and tolerate the taint of the devices", () => {
    const { spec, container } = podOf(model({ accelerator: { mig: "1g.10gb", count: 2 } }));
    expect(container.resources).toMatchObject({ limits: { "nvidia.com/mig-1g.10gb": "2" } });
    expect(container.resources?.limits).not.toHaveProperty(["nvidia.com/gpu"]);
    expect(spec.tolerations).toMatchObject([{ key: "nvidia.com/gpu" }]);
  });

  it("request a time-shared device by its name", () => {
    const { container } = podOf(model({ accelerator: { resourceName: "nvidia.com/gpu.shared" } }));
    expect(container.resources).toMatchObject({ limits: { "nvidia.com/gpu.shared": "1" } });
  });

  it("claim devices with a ResourceClaimTemplate instead of a resource limit", () => {
    const { spec, container } = podOf(model({ accelerator: { claimTemplateName: "two-gpus", count: 2 } }));
    expect(spec.resourceClaims).toEqual([{ name: "accelerator", resourceClaimTemplateName: "two-gpus" }]);
    expect(container.resources?.claims).toEqual([{ name: "accelerator" }]);
    expect(container.resources).not.toHaveProperty("limits");
  });

  it.each([
    ["of the size in the spec", { sharedMemory: "64Gi" }, "64Gi"],
    ["of 2Gi for GPU libraries", { accelerator: {} }, "2Gi"],
    ["from the container runtime by default", {}, undefined],
  ])("have a /dev/shm %s", (_what, poolSpec, sizeLimit) => {
    const { spec, container } = podOf(model(poolSpec));
    const mount = container.volumeMounts?.find(({ mountPath }) => mountPath === "/dev/shm");
    const volume = spec.volumes?.find(({ name }) => name === mount?.name);
    expect(volume?.emptyDir).toEqual(sizeLimit && { medium: "Memory", sizeLimit });
  });

  it("have their priority class, and spread each revision separately", () => {
    const topologySpread = [
      { topologyKey: "topology.kubernetes.io/zone", maxSkew: 2, whenUnsatisfiable: "DoNotSchedule" },
    ];
    const { spec } = podOf(model({ priorityClassName: "speech", topologySpread }));
    expect(spec.priorityClassName).toBe("speech");
    expect(spec.topologySpreadConstraints).toEqual([
      {
        ...topologySpread[0],
        nodeTaintsPolicy: "Honor",
        labelSelector: { matchLabels: { "tts.svc.dev/deployment": "demo", "tts.svc.dev/pool": "mist" } },
        matchLabelKeys: ["pod-template-hash"],
      },
    ]);
  });

  it("are replaced according to the rollout settings", () => {
    const rollout = { maxSurge: "50%", maxUnavailable: 0, progressDeadlineSeconds: 60 };
    expect(model({ rollout }).spec).toMatchObject({
      progressDeadlineSeconds: 60,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "50%", maxUnavailable: 0 } },
    });
  });
});

describe("the pods of the API tier", () => {
  const api = { keys: { secretRef: { name: "keys" } }, replicas: 2 };
  const child = apiDeployment(ttsDeployment({ api }), undefined, { held: false, replicas: 2 }, server);

  it("are never fewer than the replicas during a rollout", () => {
    expect(child?.spec).toMatchObject({
      replicas: 2,
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    });
  });

  it("mount license, API keys, license keys and token, and start without the first two", () => {
    const volumes = child?.spec.template.spec?.volumes;
    expect(volumes).toMatchObject([
      { name: "token", secret: { secretName: "demo-token" } },
      { name: "license", secret: { secretName: "license", optional: true } },
      { name: "license-keys", configMap: { name: "demo-routing" } },
      { name: "keys", secret: { secretName: "keys", optional: true } },
      { name: "tmp" },
    ]);
    const env = new Map(
      child?.spec.template.spec?.containers[0]?.env?.map(({ name, value }) => [name, value]),
    );
    expect(Object.fromEntries(env)).toMatchObject({
      SVC_TTS_PORT: "8000",
      SVC_TTS_ROUTING_CONFIGMAP: "demo-routing",
      SVC_TTS_LICENSE_FILE: "/var/run/svc-tts/license/license.jwt",
      SVC_TTS_LICENSE_GRACE_SECONDS: String(72 * 3600),
      SVC_TTS_KEYS_FILE: "/var/run/svc-tts/keys/keys.yaml",
    });
  });

  it("mount no license without spec.license, and a podTemplate may not change their license variables", () => {
    const render = (more: object) =>
      apiDeployment(ttsDeployment({ license: undefined, api: more }), undefined, granted, server)?.spec
        .template.spec;
    expect(render({})?.volumes?.map(({ name }) => name)).toEqual(["token", "license-keys", "tmp"]);
    const names = render({})?.containers[0]?.env?.map(({ name }) => name);
    for (const name of names?.filter((name) => /LICENSE|ROUTING|NAMESPACE/.test(name)) ?? []) {
      const podTemplate = { spec: { containers: [{ name: "api", env: [{ name, value: "9999" }] }] } };
      expect(() => render({ podTemplate })).toThrow(`must not change ${name}`);
    }
    expect(names).toEqual(
      expect.arrayContaining(["SVC_TTS_LICENSE_KEYS_FILE", "SVC_TTS_LICENSE_GRACE_SECONDS"]),
    );
  });
});

describe("the limits of API keys", () => {
  const podOfApi = (rateLimit: object) => {
    const deployment = ttsDeployment({ api: { rateLimit } });
    const { template } = apiDeployment(deployment, undefined, granted, server)?.spec ?? {};
    const env = template?.spec?.containers[0]?.env ?? [];
    const own = env.filter(({ name }) => /VALKEY|KEY_/.test(name)).map(({ name, value }) => [name, value]);
    return { env: Object.fromEntries(own), volumes: template?.spec?.volumes };
  };

  it("apply to each pod separately without Valkey", () => {
    const limits = { requestsPerMinute: 60, streams: 4, sockets: 50, socketsPerSecond: 5 };
    expect(podOfApi(limits).env).toEqual({
      SVC_TTS_KEY_REQUESTS_PER_MINUTE: "60",
      SVC_TTS_KEY_STREAMS: "4",
      SVC_TTS_KEY_SOCKETS: "50",
      SVC_TTS_KEY_SOCKETS_PER_SECOND: "5",
    });
  });

  it("are shared through Valkey with the prefix of the TtsDeployment, and pods start without its Secrets", () => {
    const { env, volumes } = podOfApi({
      valkey: {
        url: "rediss://limits@valkey.infra:6380/2",
        secretRef: { name: "v" },
        caSecretRef: { name: "ca", key: "tls.crt" },
      },
    });
    expect(env).toEqual({
      SVC_TTS_VALKEY_URL: "rediss://limits@valkey.infra:6380/2",
      SVC_TTS_VALKEY_PREFIX: "svc-tts:ns/demo:",
      SVC_TTS_VALKEY_PASSWORD_FILE: "/var/run/svc-tts/valkey/password",
      SVC_TTS_VALKEY_CA_FILE: "/var/run/svc-tts/valkey-ca/ca.crt",
    });
    expect(volumes).toContainEqual({
      name: "valkey",
      secret: {
        secretName: "v",
        optional: true,
        items: [{ key: "password", path: "password" }],
        defaultMode: 0o440,
      },
    });
    expect(volumes).toContainEqual({
      name: "valkey-ca",
      secret: {
        secretName: "ca",
        optional: true,
        items: [{ key: "tls.crt", path: "ca.crt" }],
        defaultMode: 0o440,
      },
    });
  });
});

it("the liveness probe of an API pod fails after a minute", () => {
  const child = apiDeployment(ttsDeployment(), undefined, granted, server);
  const { periodSeconds = 0, failureThreshold = 0 } =
    child?.spec.template.spec?.containers[0]?.livenessProbe ?? {};
  expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(60);
});

/** Settings that the first release supported. The tests compare the hashes that it computed for them. */
const firstReleaseApi = {
  imagePullSecrets: [{ name: "z" }],
  license: { secretRef: { name: "l", key: "k" }, gracePeriod: "1h" },
  api: {
    image: "a:2",
    replicas: 3,
    resources: { limits: { memory: "1G" } },
    drain: { maxStreamSeconds: 9 },
    service: { type: "NodePort" },
    keys: { secretRef: { name: "keys" } },
  },
};
const firstReleasePool = {
  image: "registry.example/mist@sha256:0",
  resources: { requests: { cpu: "0.5", memory: "1024Mi" }, limits: { cpu: 1, memory: "2.5Gi" } },
  env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k", optional: false } } }],
  accelerator: {
    resourceName: "example.com/gpu",
    count: 2,
    nodeSelector: { bare: "" },
    tolerations: [{ operator: "Exists" }],
    runtimeClassName: "nvidia",
  },
  maxConcurrentStreams: 3,
  drain: { maxStreamSeconds: 1, endpointDelaySeconds: 1 },
  imagePullSecrets: [{ name: "z" }],
};

describe("the settings hash of a pod template", () => {
  it("is the same hash as in the first release, also with newer fields", () => {
    expect(apiSettings(ttsDeployment())).toBe("f481e54663");
    expect(apiSettings(ttsDeployment(firstReleaseApi))).toBe("cc86d516e4");
    expect(modelSettings(ttsModelPool())).toBe("ddbe172bb4");
    expect(modelSettings(ttsModelPool(firstReleasePool))).toBe("39ad79c6ae");
  });

  it.each([
    ["a disruption budget", { podDisruptionBudget: { maxUnavailable: 2 } }, "same"],
    ["a topology spread", { topologySpread: [{ topologyKey: "zone" }] }, "other"],
    ["a priority class", { priorityClassName: "speech" }, "other"],
    ["shared memory", { sharedMemory: "1Gi" }, "other"],
  ])("changes only with settings of the pods: with %s it is the %s hash", (_what, spec, expected) => {
    const [before, after] = [modelSettings(ttsModelPool()), modelSettings(ttsModelPool(spec))];
    expect(after === before ? "same" : "other").toBe(expected);
  });

  it("changes with the topology spread of the API pods, and not with network policies", () => {
    const before = apiSettings(ttsDeployment());
    const spread = { availability: { topologySpread: [{ topologyKey: "zone" }] } };
    expect(apiSettings(ttsDeployment(spread))).not.toBe(before);
    expect(apiSettings(ttsDeployment({ networkPolicy: { enabled: true } }))).toBe(before);
    expect(apiSettings(ttsDeployment({ api: { route: { hostnames: ["a.example"], ingress: {} } } }))).toBe(
      before,
    );
  });
});

describe("a pod template", () => {
  it("stays pinned in an upgrade of the operator, and is rendered again when the settings change", () => {
    const before = model();
    const live: Deployment = { ...running(1), metadata: { ...running(1).metadata, ...before.metadata } };
    expect(model({}, "server:2", live).spec.template).toEqual(before.spec.template);
    const changed = model({ maxConcurrentStreams: 3 }, "server:2", live);
    expect(podOf(changed).container.image).toBe("server:2");
    expect(podOf(model({ replicas: 7 }, "server:2", live)).container.image).toBe("server:1");
  });

  it.each([
    ["vllm", { type: "vllm" }, "8Gi"],
    ["kokoro", { type: "kokoro" }, "2Gi"],
  ])("of the engine %s gets its default resources only at the next rollout", (_engine, engine, memory) => {
    const spec = { kind: "arcana", engine, cache: { emptyDir: {} } };
    // Earlier operators wrote the default of the schema into the pool.
    const earlier = { ...spec, resources: { requests: { cpu: "100m", memory: "512Mi" } } };
    const before = model(earlier);
    const live: Deployment = { ...running(1), metadata: { ...running(1).metadata, ...before.metadata } };
    const afterUpgrade = (more: object) => {
      const owner = ttsDeployment({}, [{ name: "mist", ...spec, ...more }]);
      const pool = withDesiredSpec(owner, ttsModelPool(earlier));
      return plannedDeployment(pool, live, granted, { ...server, image: "server:2" }) ?? before;
    };
    expect(afterUpgrade({}).spec.template).toEqual(before.spec.template);
    const { container } = podOf(afterUpgrade({ maxConcurrentStreams: 3 }));
    expect(container).toMatchObject({ image: "server:2", resources: { requests: { cpu: "2", memory } } });
  });

  it("is rendered again after a manual change of the pinned template", () => {
    const before = model();
    const annotations = { ...before.metadata.annotations };
    for (const changed of ['{"spec":{}}', "no JSON"]) {
      annotations["tts.svc.dev/pod-template"] = changed;
      const live: Deployment = { ...running(1), metadata: { ...before.metadata, annotations } };
      expect(podOf(model({}, "server:2", live)).container.image).toBe("server:2");
    }
  });

  it("stays pinned while the license does not allow a rollout", () => {
    const before = model();
    const live: Deployment = { ...running(1), metadata: before.metadata };
    expect(model({ maxConcurrentStreams: 3 }, "server:2", live, held).spec.template).toEqual(
      before.spec.template,
    );
  });

  it("is not rendered if no Deployment exists and the license does not allow a start", () => {
    expect(plannedDeployment(ttsModelPool(), undefined, held, server)).toBeUndefined();
    expect(apiDeployment(ttsDeployment(), undefined, held, server)).toBeUndefined();
  });
});
