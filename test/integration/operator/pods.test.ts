import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { kubectl, kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

let house: OperatorHouse;
let endPlay: (() => Promise<void>) | undefined;

beforeEach(async () => {
  house = await OperatorHouse.open();
});

afterEach(async () => {
  await endPlay?.();
  endPlay = undefined;
  await house[Symbol.asyncDispose]();
});

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
    expect(await house.writesOfRestart()).toBe(0);
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
    await house.idle();
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
    await house.idle();
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

it("keys in an SQLite file have one pod at a time, and go to PostgreSQL and its password as the spec says", async () => {
  const api = () => house.workload("demo-api");
  await house.ready();
  endPlay = house.play();
  const sqlite = { persistentVolumeClaim: { claimName: "keys" } };
  await house.putDeployment({ api: { keys: { sqlite } } });
  await house.until(async () => (await api()).spec?.strategy?.type === "Recreate", "the one writer");
  await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  expect((await api()).spec?.strategy).toEqual({ type: "Recreate" });
  expect((await api()).spec?.template.spec?.volumes).toContainEqual({
    name: "database",
    persistentVolumeClaim: { claimName: "keys" },
  });
  expect(await house.writesOfRestart()).toBe(0);
  const postgres = { url: "postgres://svc-tts@db/tts", secretRef: { name: "database" } };
  await house.putDeployment({ api: { keys: { postgres } } });
  await house.until(
    async () => (await house.condition("ApiReady")).startsWith("False DatabaseSecretMissing"),
    "the missing password",
  );
  expect((await api()).spec?.strategy?.type).toBe("RollingUpdate");
  const metadata = { name: "database", namespace: house.namespace };
  await house.admin.create({ apiVersion: "v1", kind: "Secret", metadata, stringData: { password: "p" } });
  await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
});
