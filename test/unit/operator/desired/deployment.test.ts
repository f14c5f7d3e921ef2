import { describe, expect, it } from "vitest";
import { Env } from "../../../../crds/fields.ts";
import { apiDeployment, modelDeployment } from "../../../../operator/desired/deployment.ts";
import type { Deployment } from "../../../../operator/observed.ts";
import { running, ttsDeployment, ttsModelPool } from "../../../support/observed.ts";

const server = { image: "server:1", pullPolicy: undefined };
const open = { held: false, replicas: 1 };
const held = { held: true, replicas: 1 };

function model(spec: object = {}, image = "server:1", live?: Deployment, grant = open) {
  const child = modelDeployment(ttsModelPool({ ...spec }), live, grant, { ...server, image });
  if (child === undefined) throw new Error("no Deployment was rendered");
  return child;
}

function podOf(child: ReturnType<typeof model>) {
  const spec = child.spec.template.spec;
  const [container] = spec?.containers ?? [];
  if (!spec || !container) throw new Error("no pod was rendered");
  return { spec, container, env: new Map(container.env?.map(({ name, value }) => [name, value])) };
}

describe("pods of a model", () => {
  it("run their kind, with probes on the routes of the specification (4.6)", () => {
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

  it("drain: forgotten first, then the whole stream time, and a margin", () => {
    const drain = { maxStreamSeconds: 600, endpointDelaySeconds: 7 };
    const { spec, container, env } = podOf(model({ drain }));
    expect(container.lifecycle).toEqual({ preStop: { sleep: { seconds: 7 } } });
    expect(spec.terminationGracePeriodSeconds).toBe(7 + 600 + 15);
    expect(env.get("SVC_TTS_DRAIN_SECONDS")).toBe("600");
  });

  it("get no variable from the operator that a user may set too: an apply refuses the same name twice", () => {
    const rules = JSON.stringify(Env.items);
    expect([...podOf(model()).env.keys()].filter((name) => !rules.includes(`'${name}'`))).toEqual([]);
  });

  it("keep to Pod Security restricted, without a token of the API server", () => {
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

  it("ask for their GPU, and tolerate its taint", () => {
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

  it("are replaced as the rollout says", () => {
    const rollout = { maxSurge: "50%", maxUnavailable: 0, progressDeadlineSeconds: 60 };
    expect(model({ rollout }).spec).toMatchObject({
      progressDeadlineSeconds: 60,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "50%", maxUnavailable: 0 } },
    });
  });
});

describe("pods of the API", () => {
  const api = { keys: { secretRef: { name: "keys" } }, replicas: 2 };
  const child = apiDeployment(ttsDeployment({ api }), undefined, { held: false, replicas: 2 }, server);

  it("never go below their number in a rollout", () => {
    expect(child?.spec).toMatchObject({
      replicas: 2,
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    });
  });

  it("mount license, keys, license keys and token, and start without the first two", () => {
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
});

describe("a pod template", () => {
  it("is kept through an operator's upgrade, and rendered anew when the settings change", () => {
    const before = model();
    const live: Deployment = { ...running(1), metadata: { ...running(1).metadata, ...before.metadata } };
    expect(model({}, "server:2", live).spec.template).toEqual(before.spec.template);
    const changed = model({ maxConcurrentStreams: 3 }, "server:2", live);
    expect(podOf(changed).container.image).toBe("server:2");
    expect(podOf(model({ replicas: 7 }, "server:2", live)).container.image).toBe("server:1");
  });

  it("is rendered anew when somebody tampered with the kept one", () => {
    const before = model();
    const annotations = { ...before.metadata.annotations };
    for (const forged of ['{"spec":{}}', "no JSON"]) {
      annotations["tts.svc.dev/pod-template"] = forged;
      const live: Deployment = { ...running(1), metadata: { ...before.metadata, annotations } };
      expect(podOf(model({}, "server:2", live)).container.image).toBe("server:2");
    }
  });

  it("is held as it is while the license does not let it roll", () => {
    const before = model();
    const live: Deployment = { ...running(1), metadata: before.metadata };
    expect(model({ maxConcurrentStreams: 3 }, "server:2", live, held).spec.template).toEqual(
      before.spec.template,
    );
  });

  it("is not made at all where nothing runs yet and the license holds", () => {
    expect(modelDeployment(ttsModelPool(), undefined, held, server)).toBeUndefined();
    expect(apiDeployment(ttsDeployment(), undefined, held, server)).toBeUndefined();
  });
});
