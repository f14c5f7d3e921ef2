import { afterEach, describe, expect, inject, it } from "vitest";
import { kubectl } from "../../support/cluster/kubectl.ts";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

let house: OperatorHouse;
let endPlay: (() => Promise<void>) | undefined;

useOperatorHouse((opened) => {
  house = opened;
});

afterEach(async () => {
  await endPlay?.();
  endPlay = undefined;
});

async function createUnderRestricted(name: string) {
  const enforce = "pod-security.kubernetes.io/enforce=restricted";
  await house.kubectl("label", "namespace", house.namespace, enforce, "--overwrite");
  const { spec } = await house.workload(name);
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { generateName: `${name}-`, namespace: house.namespace },
    spec: spec?.template.spec,
  };
  return kubectl(inject("controlPlane"), ["create", "--dry-run=server", "-f", "-"], JSON.stringify(pod));
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

  it("overrides the operator's pod template, and causes no write after a restart", async () => {
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
    expect(await house.writesOfRestart()).toBe(0);
  });

  it("removes fields of the pod template with null", async () => {
    const withoutProbe = { spec: { containers: [{ name: "mist", startupProbe: null }] } };
    await house.ready({}, [{ name: "mist", kind: "mist", podTemplate: withoutProbe }]);
    const [container] = (await house.workload("demo-mist")).spec?.template.spec?.containers ?? [];
    expect(container).not.toHaveProperty("startupProbe");
    expect(container).toHaveProperty("livenessProbe");
  });

  it("that cannot be merged or applied is reported, and the pods stay unchanged", async () => {
    await house.ready();
    const { generation } = (await house.workload("demo-mist")).metadata;
    for (const [podTemplate, message] of [
      [
        { spec: { containers: [{ image: "x" }] } },
        /PodTemplateInvalid: .*models\[mist\]\.podTemplate\.spec\.containers\[0\] has no name/,
      ],
      [{ spec: { terminationGracePeriodSeconds: -1 } }, /Invalid: .*terminationGracePeriodSeconds/],
      [{ spec: { hostNmae: "x" } }, /Invalid: .*hostNmae/],
    ] as const) {
      await house.putDeployment({}, [{ name: "mist", kind: "mist", podTemplate }]);
      await house.untilCondition("ModelsReady", message);
      expect(await house.condition("Stalled")).toMatch(/^True/);
      expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
      await house.putDeployment();
      await house.untilReady();
    }
  });

  it("of the API that cannot be merged is reported too", async () => {
    await house.ready();
    await house.putDeployment({
      api: { podTemplate: { spec: { containers: [{ name: "api", $patch: "delete" }] } } },
    });
    await house.untilCondition("Stalled", /^True PodTemplateInvalid: api\.podTemplate/);
  });
});

describe("PodDisruptionBudgets, NetworkPolicies and Pod Security:", () => {
  it("budgets and policies are created if the spec enables them, and are deleted otherwise", async () => {
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
    for (const [kind, name] of children) await house.untilGone(kind, name);
    await house.idle();
    expect((await house.workload("demo-mist")).metadata.generation).toBe(generation);
  });

  it("policies of another owner are not deleted, even with the operator's labels", async () => {
    const metadata = {
      name: "theirs",
      namespace: house.namespace,
      labels: { "tts.svc.dev/deployment": "demo", "app.kubernetes.io/managed-by": "tts-operator" },
    };
    const spec = { podSelector: {}, policyTypes: ["Ingress"] };
    await house.admin.create({ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata, spec });
    await house.ready();
    await house.idle();
    await house.mustGet("NetworkPolicy", "theirs");
  });

  it("pods with every kind of device comply with Pod Security restricted", async () => {
    await house.ready({}, [
      { name: "plain", kind: "mist" },
      { name: "gpu", kind: "mist", accelerator: {}, sharedMemory: "1Gi" },
      { name: "claimed", kind: "mist", accelerator: { claimTemplateName: "gpus" } },
      { name: "fetched", kind: "mist", cache: { emptyDir: {}, sources: [{ url: "hf://o/r" }] } },
      { name: "image", kind: "mist", cache: { imageVolume: { reference: "registry.example/model:1" } } },
    ]);
    for (const name of ["api", "plain", "gpu", "claimed", "fetched", "image"].map((pool) => `demo-${pool}`)) {
      expect(await createUnderRestricted(name)).toMatchObject({ code: 0, stderr: "" });
    }
  });
});

describe("the conditions report", () => {
  // The condition of each state is tested in test/unit/operator/status/workload.test.ts.
  it("a pod that cannot start", async () => {
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment();
    await house.untilThere("Deployment", "demo-mist");
    const pod = await house.admin.create({
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: "demo-mist-abc",
        namespace: house.namespace,
        labels: { "tts.svc.dev/deployment": "demo", "tts.svc.dev/pool": "mist" },
      },
      spec: { containers: [{ name: "mist", image: "i:1" }] },
    });
    const container = {
      ...{ name: "mist", image: "registry.example/tts:9", imageID: "", ready: false, restartCount: 4 },
      state: { waiting: { reason: "ImagePullBackOff", message: "not found" } },
    };
    await house.setStatus(pod, { containerStatuses: [container] });
    await house.untilCondition(
      "ModelsReady",
      /^False ImagePullFailed: pool mist: .*registry.example\/tts:9.*not found.*imagePullSecrets/,
    );
    expect(await house.condition("Ready")).toMatch(/^False/);
  });

  it("a Deployment that cannot create pods", async () => {
    await house.ready();
    const live = await house.workload("demo-mist");
    const message = 'pods "x" is forbidden: exceeded quota: small';
    await house.setStatus(live, {
      observedGeneration: live.metadata.generation,
      replicas: 1,
      conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message }],
    });
    await house.untilCondition("ModelsReady", /^False QuotaExceeded: .*exceeded quota/);
  });

  it("a missing Secret of keys, until the Secret is created", async () => {
    await house.putLicense(await house.issuer.issue());
    await house.putDeployment({ api: { keys: { secretRef: { name: "keys" } } } });
    await house.serve("demo-api", "demo-mist");
    await house.untilCondition("ApiReady", /^False KeysSecretMissing/);
    expect(await house.condition("ApiReady")).toContain(`${house.namespace}/keys`);
    const metadata = { name: "keys", namespace: house.namespace };
    await house.admin.create({
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      stringData: { "keys.yaml": "keys: []" },
    });
    await house.untilReady();
  });
});

it("the API tier has one pod at a time with SQLite, and changes to PostgreSQL when the spec changes", async () => {
  const api = () => house.workload("demo-api");
  await house.ready();
  endPlay = house.play();
  const sqlite = { persistentVolumeClaim: { claimName: "keys" } };
  await house.putDeployment({ api: { keys: { sqlite } } });
  await house.until(async () => {
    const { metadata, spec, status } = await api();
    return spec?.strategy?.type === "Recreate" && status?.observedGeneration === metadata.generation;
  }, "the strategy Recreate and the status of the Deployment controller");
  await house.idle();
  await house.untilReady();
  expect((await api()).spec?.strategy).toEqual({ type: "Recreate" });
  expect((await api()).spec?.template.spec?.volumes).toContainEqual({
    name: "database",
    persistentVolumeClaim: { claimName: "keys" },
  });
  expect(await house.writesOfRestart()).toBe(0);
  const postgres = { url: "postgres://svc-tts@db/tts?sslmode=disable", secretRef: { name: "database" } };
  await house.putDeployment({ api: { keys: { postgres } } });
  await house.untilCondition("ApiReady", /^False DatabaseSecretMissing/);
  expect((await api()).spec?.strategy?.type).toBe("RollingUpdate");
  const metadata = { name: "database", namespace: house.namespace };
  await house.admin.create({ apiVersion: "v1", kind: "Secret", metadata, stringData: { password: "p" } });
  await house.untilReady();
});
