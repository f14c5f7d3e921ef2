import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import { defaultClassAnnotation } from "../../../config/contract/names.ts";
import { TtsClassSpecSchema } from "../../../crds/tts-class.ts";
import type { ClassRecord, TtsDeploymentStatus } from "../../../crds/tts-deployment.ts";
import { applyClass } from "../../../operator/classes/apply-class.ts";
import { ClassAllocations } from "../../../operator/classes/class-allocations.ts";
import { noUse, useOfSpec } from "../../../operator/classes/class-use.ts";
import { type ClassesOfCluster, resolveClass, storedShare } from "../../../operator/classes/resolve-class.ts";
import type { TtsClass, TtsDeployment } from "../../../operator/facts/observed.ts";
import { deploymentChildren } from "../../../operator/reconcile/children.ts";
import { granting, observed, serverSettings, ttsDeployment } from "../../support/operator/observed.ts";
import { refusedAtApply, tenantClass } from "../../support/operator/tenant-attempts.ts";

type Json = { [name: string]: unknown };

const classSpec = (spec: Json = {}) =>
  Value.Default(TtsClassSpecSchema, structuredClone(spec)) as TtsClass["spec"];

function ttsClass(name: string, spec: Json = {}, metadata: Partial<TtsClass["metadata"]> = {}): TtsClass {
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsClass",
    metadata: { name, ...metadata },
    spec: classSpec(spec),
  };
}

const limited = (limits: Json) => classSpec({ limits });
const context = { namespace: "ns", elsewhere: noUse };
const mist = { name: "mist", kind: "mist", replicas: 1 };

/** Returns the violations as text. */
function violations(spec: Json, models: Json[], limits: Json, elsewhere = noUse): string[] {
  const applied = applyClass(ttsDeployment(spec, models).spec, limited(limits), { ...context, elsewhere });
  return [...applied.violations, ...applied.exceededSums].map(({ field, problem }) => `${field} ${problem}`);
}

const route = (...hostnames: string[]) => ({ api: { route: { hostnames, ingress: {} } } });
const source = (more: Json) => [{ ...mist, cache: { emptyDir: {}, sources: [more] } }];

describe("applyClass refuses", () => {
  it.each<[string, Json, Json[], Json, string[]]>([
    [
      "a host name outside the patterns",
      route("tts.b.example"),
      [mist],
      { allowedHostnames: ["*.a.example", "b.example"] },
      ["spec.api.route.hostnames[0] is tts.b.example, but the class allows *.a.example, b.example"],
    ],
    [
      "a host name that only ends like the pattern",
      route("nota.example"),
      [mist],
      { allowedHostnames: ["*.a.example", "a.example"] },
      ["spec.api.route.hostnames[0] is nota.example, but the class allows *.a.example, a.example"],
    ],
    [
      "every host name with an empty list",
      route("a.example"),
      [mist],
      { allowedHostnames: [] },
      ["spec.api.route.hostnames[0] is a.example, but the class allows no value"],
    ],
    [
      "a type of the Service",
      { api: { service: { type: "LoadBalancer" } } },
      [mist],
      { allowedServiceTypes: ["ClusterIP"] },
      ["spec.api.service.type is LoadBalancer, but the class allows ClusterIP"],
    ],
    [
      "annotations of the Service, the Ingress and the pods",
      {
        api: {
          service: { annotations: { "lb.example/type": "nlb", "dns.example/hostname": "x" } },
          route: { hostnames: ["a.example"], ingress: { annotations: { "nginx.example/snippet": "y" } } },
        },
      },
      [{ ...mist, podTemplate: { metadata: { annotations: { sidecar: "yes" } } } }],
      { allowedAnnotations: ["lb.example/*"] },
      [
        "spec.api.service.annotations contains dns.example/hostname, but the class allows lb.example/*",
        "spec.api.route.ingress.annotations contains nginx.example/snippet, but the class allows lb.example/*",
        "spec.models[0].podTemplate.metadata.annotations contains sidecar, but the class allows lb.example/*",
      ],
    ],
    [
      "images of another registry",
      { api: { image: "registry.example.evil/api:1" } },
      [{ ...mist, image: "other/mist:1", cache: { imageVolume: { reference: "other/model:1" } } }],
      { allowedImages: ["registry.example"] },
      [
        "spec.api.image is registry.example.evil/api:1, but the class allows registry.example",
        "spec.models[0].image is other/mist:1, but the class allows registry.example",
        "spec.models[0].cache.imageVolume.reference is other/model:1, but the class allows registry.example",
      ],
    ],
    [
      "a model source on another host",
      {},
      source({ url: "https://models.example.evil/a" }),
      { allowedModelSources: ["https://models.example"] },
      [
        "spec.models[0].cache.sources[0].url is https://models.example.evil/a, but the class allows https://models.example",
      ],
    ],
    [
      "another port of a host with model sources",
      {},
      source({ url: "https://models.example:8443/a" }),
      { allowedModelSources: ["https://models.example"] },
      [
        "spec.models[0].cache.sources[0].url is https://models.example:8443/a, but the class allows https://models.example",
      ],
    ],
    [
      "a model source with a path that leaves the prefix",
      {},
      source({ url: "https://models.example/a/%2E./b" }),
      { allowedModelSources: ["https://models.example/a/"] },
      [
        "spec.models[0].cache.sources[0].url is https://models.example/a/%2E./b, but the class allows https://models.example/a/",
      ],
    ],
    [
      "another endpoint of an allowed repository",
      {},
      source({ url: "hf://o/r@main", endpoint: "https://mirror.evil" }),
      { allowedModelSources: ["hf://o/r"] },
      ["spec.models[0].cache.sources[0].endpoint is https://mirror.evil, but the class allows hf://o/r"],
    ],
    [
      "a podTemplate",
      { api: { podTemplate: {} } },
      [{ ...mist, podTemplate: { metadata: { labels: { a: "b" } } } }],
      { podTemplate: "None" },
      [
        "spec.api.podTemplate is set, but the class allows no podTemplate",
        "spec.models[0].podTemplate is set, but the class allows no podTemplate",
      ],
    ],
    [
      "unsafe fields of a podTemplate",
      { api: { podTemplate: { spec: { hostNetwork: true, nodeSelector: {} } } } },
      [{ ...mist, podTemplate: { spec: { $patch: "replace", serviceAccountName: "admin" } } }],
      { podTemplate: "Safe" },
      ["hostNetwork", "models[0].podTemplate.spec.$patch", "models[0].podTemplate.spec.serviceAccountName"],
    ],
    [
      "an accelerator that is no profile",
      {},
      [{ ...mist, accelerator: { count: 1 } }],
      { accelerators: "Profiles" },
      ["spec.models[0].accelerator is set, but the class allows only its profiles in acceleratorProfile"],
    ],
    [
      "an unknown profile",
      {},
      [{ ...mist, acceleratorProfile: "l4" }],
      {},
      ["spec.models[0].acceleratorProfile is l4, but the profiles of the class are: none"],
    ],
    [
      "another namespace",
      {},
      [mist],
      { allowedNamespaces: ["speech"] },
      ["metadata.namespace is ns, which may not use the class"],
    ],
    [
      "too many pods",
      { api: { replicas: 1, scaling: { maxReplicas: 2 } } },
      [mist, { name: "two", kind: "mist", scaling: { maxReplicas: 3 } }],
      { maxReplicasPerNamespace: 5 },
      ["spec requests 6 pods, but the class allows 5 pods in each namespace"],
    ],
    [
      "too many devices",
      {},
      [{ ...mist, replicas: 2, accelerator: { count: 2 } }],
      { maxGpusPerNamespace: 3 },
      ["spec requests 4 devices, but the class allows 3 devices in each namespace"],
    ],
    [
      "an image of another port of a registry, which is another registry",
      { api: { image: "registry.example:5000/api:1" } },
      [{ ...mist, image: "registry.example/mist:1" }],
      { allowedImages: ["registry.example"] },
      ["spec.api.image is registry.example:5000/api:1, but the class allows registry.example"],
    ],
    [
      "an image of a registry that has the name of an allowed repository",
      { api: { image: "speech:5000/api" } },
      [{ ...mist, image: "speech:5000" }],
      { allowedImages: ["speech"] },
      ["spec.api.image is speech:5000/api, but the class allows speech"],
    ],
    [
      "a model source of another port of a registry",
      {},
      source({ url: "oci://registry.example:5000/m:1" }),
      { allowedModelSources: ["oci://registry.example"] },
      ["spec.models[0].cache.sources[0].url is oci://registry.example:5000/m:1"],
    ],
    ...["..%2f..%2fb", "..%2Fb", "%2e%2e/b", "..%5cb", "..\\b", "%252e%252e/b"].map(
      (path): [string, Json, Json[], Json, string[]] => [
        `the path ${path} of a model source`,
        {},
        source({ url: `https://models.example/a/${path}` }),
        { allowedModelSources: ["https://models.example/a/"] },
        [`spec.models[0].cache.sources[0].url is https://models.example/a/${path}`],
      ],
    ),
    [
      "a variable",
      {},
      [{ ...mist, env: [{ name: "NODE_OPTIONS", value: "--import=x" }, { name: "LOG_LEVEL" }] }],
      { allowedEnv: ["LOG_*"] },
      ["spec.models[0].env[0].name is NODE_OPTIONS, but the class allows LOG_*"],
    ],
    [
      "Secrets of sources, variables, headers, keys and registries",
      {
        license: undefined,
        imagePullSecrets: [{ name: "tts-pull" }, { name: "pull" }],
        api: { keys: { secretRef: { name: "keys" } }, tls: { secretName: "tls" } },
        telemetry: {
          endpoint: "http://otlp.example:4317",
          collector: { auth: { headers: [{ name: "api-key", secretRef: { name: "otlp", key: "k" } }] } },
        },
      },
      [
        {
          ...mist,
          env: [{ name: "A", valueFrom: { secretKeyRef: { name: "env", key: "k" } } }],
          cache: { emptyDir: {}, sources: [{ url: "https://m.example/a", secretRef: { name: "source" } }] },
        },
      ],
      { allowedSecrets: ["tts-*"] },
      [
        "spec.imagePullSecrets[1].name is pull, but the class allows tts-*",
        "spec.api.keys.secretRef.name is keys",
        "spec.api.tls.secretName is tls",
        "spec.telemetry.collector.auth.headers[0].secretRef.name is otlp",
        "spec.models[0].env[0].valueFrom.secretKeyRef.name is env",
        "spec.models[0].cache.sources[0].secretRef.name is source",
      ],
    ],
    [
      "claims of model files and of the database",
      { api: { keys: { sqlite: { persistentVolumeClaim: { claimName: "db" } } } } },
      [{ ...mist, cache: { persistentVolumeClaim: { claimName: "mine" } } }],
      { allowedClaims: [] },
      [
        "spec.api.keys.sqlite.persistentVolumeClaim.claimName is db, but the class allows no value",
        "spec.models[0].cache.persistentVolumeClaim.claimName is mine, but the class allows no value",
      ],
    ],
    [
      "a claim template, whose devices are not known",
      {},
      [{ ...mist, accelerator: { claimTemplateName: "gpus" } }],
      { maxGpusPerNamespace: 3 },
      ["spec.models[0].accelerator.claimTemplateName is set, but the class limits the devices"],
    ],
    [
      "a spec that is too long to be recorded",
      {},
      [{ ...mist, podTemplate: { spec: { affinity: { text: "x".repeat(262_144) } } } }],
      {},
      ["characters with the defaults of the class, but at most 262144 are allowed with a class"],
    ],
    [
      "a pool whose replicas nothing limits",
      {},
      [
        { name: "mist", kind: "mist" },
        { name: "two", kind: "mist", scaling: { provider: "External" } },
      ],
      { maxReplicasPerNamespace: 50 },
      ["spec.models[0].replicas is not set", "spec.models[1].replicas is not set"],
    ],
  ])("%s", (_what, spec, models, limits, expected) => {
    const found = violations(spec, models, limits);
    expect(found).toEqual(expected.map((text) => expect.stringContaining(text)));
  });

  it("a profile with a claim template, whose devices are not known", () => {
    const profile = { name: "l4", accelerator: { claimTemplateName: "gpus" } };
    const spec = classSpec({ acceleratorProfiles: [profile], limits: { maxGpusPerNamespace: 3 } });
    const { violations: found } = applyClass(
      ttsDeployment({}, [{ ...mist, acceleratorProfile: "l4" }]).spec,
      spec,
      context,
    );
    expect(found).toEqual([
      {
        field: "spec.models[0].acceleratorProfile",
        problem: expect.stringContaining("is l4, which has a claimTemplateName"),
      },
    ]);
  });

  it("pods and devices that are too many together with other TtsDeployments of the namespace", () => {
    const models = [{ ...mist, accelerator: { count: 1 } }];
    const elsewhere = { replicas: 4, gpus: 1 };
    expect(violations({}, models, { maxReplicasPerNamespace: 5, maxGpusPerNamespace: 1 }, elsewhere)).toEqual(
      [
        "spec requests 2 pods, and other TtsDeployments of the namespace request 4, but the class allows 5 pods in each namespace",
        "spec requests 1 devices, and other TtsDeployments of the namespace request 1, but the class allows 1 devices in each namespace",
      ],
    );
    expect(violations({}, models, { maxReplicasPerNamespace: 6, maxGpusPerNamespace: 2 }, elsewhere)).toEqual(
      [],
    );
  });
});

describe("applyClass, like the admission policy, refuses", () => {
  const attempts = refusedAtApply.filter(({ spec }) => spec === undefined || !("className" in spec));
  it.each(attempts.map(({ what, spec = {}, models = [mist] }) => [what, spec, models] as const))(
    "%s",
    (_what, spec, models) => {
      const license = { secretRef: { name: "tts-license" } };
      const { spec: complete } = ttsDeployment({ license, ...spec }, [...models]);
      const applied = applyClass(complete, classSpec(tenantClass), context);
      expect(applied.violations).toHaveLength(1);
    },
  );
});

describe("applyClass allows", () => {
  it.each<[string, Json, Json[], Json]>([
    [
      "every value without limits",
      route("any.example"),
      [{ ...mist, podTemplate: { spec: { hostPID: true } } }],
      {},
    ],
    [
      "a host name below a pattern",
      route("a.b.example", "*.b.example"),
      [mist],
      { allowedHostnames: ["*.b.example"] },
    ],
    [
      "an annotation by its name",
      { api: { service: { annotations: { a: "1" } } } },
      [mist],
      { allowedAnnotations: ["a"] },
    ],
    [
      "an image with a tag of an allowed repository",
      { api: { image: "r.example/api:1" } },
      [mist],
      { allowedImages: ["r.example/api"] },
    ],
    [
      "an image with a digest of an allowed repository",
      { api: { image: `r.example/api@sha256:${"0".repeat(64)}` } },
      [{ ...mist, image: `r.example/api:1@sha256:${"0".repeat(64)}` }],
      { allowedImages: ["r.example/api"] },
    ],
    [
      "only one digest of an image",
      { api: { image: `r.example/api@sha256:${"0".repeat(64)}` } },
      [mist],
      { allowedImages: [`r.example/api@sha256:${"0".repeat(64)}`] },
    ],
    [
      "a revision of an allowed repository",
      {},
      source({ url: "hf://o/r@main" }),
      { allowedModelSources: ["hf://o/r"] },
    ],
    [
      "a file below an allowed URL",
      {},
      source({ url: "https://m.example/a.b..c/d" }),
      { allowedModelSources: ["https://m.example/"] },
    ],
    [
      "safe fields of a podTemplate",
      { api: { podTemplate: { metadata: { labels: { a: "b" } }, spec: { affinity: {}, tolerations: [] } } } },
      [mist],
      { podTemplate: "Safe" },
    ],
    ["the highest number of pods", {}, [mist], { maxReplicasPerNamespace: 2 }],
  ])("%s", (_what, spec, models, limits) => {
    expect(violations(spec, models, limits)).toEqual([]);
  });
});

describe("the defaults of a class", () => {
  const accelerator = { nodeSelector: { gpu: "l4" }, tolerations: [{ key: "gpu", operator: "Exists" }] };
  const full = classSpec({
    defaults: {
      images: { api: "r/api:1", mist: "r/mist:1", arcana: "r/arcana:1" },
      imagePullSecrets: [{ name: "pull" }],
      imagePullPolicy: "Always",
      fixedUserIds: false,
      priorityClassName: "speech",
      replicas: 2,
      topologySpread: [{ topologyKey: "zone" }],
      telemetry: { endpoint: "http://otlp.example:4317" },
    },
    acceleratorProfiles: [{ name: "l4", accelerator }],
  });

  it("fill the fields that the TtsDeployment does not set", () => {
    const models = [
      { name: "mist", kind: "mist" },
      { name: "arcana", kind: "arcana", acceleratorProfile: "l4", scaling: { maxReplicas: 4 } },
    ];
    const { spec, violations: found } = applyClass(
      ttsDeployment({ className: "c" }, models).spec,
      full,
      context,
    );
    expect(found).toEqual([]);
    expect(spec).not.toHaveProperty("className");
    expect(spec).toMatchObject({
      api: { image: "r/api:1", priorityClassName: "speech" },
      imagePullSecrets: [{ name: "pull" }],
      imagePullPolicy: "Always",
      fixedUserIds: false,
      telemetry: { endpoint: "http://otlp.example:4317" },
      availability: { topologySpread: [{ topologyKey: "zone" }] },
      models: [
        { image: "r/mist:1", priorityClassName: "speech", replicas: 2 },
        { image: "r/arcana:1", accelerator: { ...accelerator, resourceName: "nvidia.com/gpu", count: 1 } },
      ],
    });
    expect(spec.models[1]).not.toHaveProperty("replicas");
    expect(spec.models[1]).not.toHaveProperty("acceleratorProfile");
    expect(useOfSpec(spec)).toEqual({ replicas: 1 + 2 + 4, gpus: 4 });
  });

  it("do not replace fields of the TtsDeployment", () => {
    const own = {
      imagePullSecrets: [{ name: "mine" }],
      imagePullPolicy: "Never",
      fixedUserIds: true,
      api: { image: "mine/api", priorityClassName: "low" },
      availability: { topologySpread: [{ topologyKey: "host" }] },
      telemetry: { endpoint: "http://mine:4317" },
    };
    const models = [{ ...mist, image: "mine/mist", priorityClassName: "low", replicas: 0 }];
    const { spec } = ttsDeployment(own, models);
    expect(applyClass(spec, full, context).spec).toEqual(spec);
  });

  it("are allowed although the limits do not allow them in a TtsDeployment", () => {
    const limits = { allowedImages: [], accelerators: "Profiles", maxGpusPerNamespace: 2 };
    const { spec } = ttsDeployment({}, [{ name: "mist", kind: "mist", acceleratorProfile: "l4" }]);
    expect(
      applyClass(
        spec,
        {
          ...full,
          ...limited(limits),
          defaults: full.defaults,
          acceleratorProfiles: full.acceleratorProfiles,
        },
        context,
      ).violations,
    ).toEqual([]);
  });
});

const alone: ClassesOfCluster = { classes: [], isNamespaced: false, elsewhere: () => noUse };
const among = (...classes: TtsClass[]): ClassesOfCluster => ({ ...alone, classes });
const isDefault = { annotations: { [defaultClassAnnotation]: "true" } };

function withStatus(deployment: TtsDeployment, status: Json, generation = 1): TtsDeployment {
  const metadata = { ...deployment.metadata, generation };
  return { ...deployment, metadata, status: { conditions: [], ...status } as unknown as TtsDeploymentStatus };
}

const renderedAt = (observedGeneration: number) => ({
  conditions: [{ type: "ApiReady", status: "True", observedGeneration }],
});

describe("resolveClass", () => {
  it("changes nothing without a class", () => {
    const deployment = ttsDeployment();
    const resolved = resolveClass(deployment, alone);
    expect(resolved).toMatchObject({ deployment, decision: undefined, isFrozen: false, share: undefined });
    expect(JSON.parse(resolved.record?.spec ?? "")).toEqual(deployment.spec);
    expect(resolved.deployment).toBe(deployment);
  });

  it("renders the same children with a class that has no defaults", () => {
    const plain = ttsDeployment();
    const { deployment } = resolveClass(
      { ...plain, spec: { ...plain.spec, className: "c" } },
      among(ttsClass("c")),
    );
    const render = (one: TtsDeployment) =>
      deploymentChildren(observed(one), granting("mist"), serverSettings).children;
    expect(render(deployment)).toEqual(render(plain));
  });

  it("selects the named class, otherwise the newest default class", () => {
    const classes = among(
      ttsClass("named"),
      ttsClass("old", {}, { ...isDefault, creationTimestamp: "2026-01-01T00:00:00Z" }),
      ttsClass("new", {}, { ...isDefault, creationTimestamp: "2026-01-02T00:00:00Z" }),
    );
    const nameOf = (spec: Json) => resolveClass(ttsDeployment(spec), classes).record?.name;
    expect(nameOf({ className: "named" })).toBe("named");
    expect(nameOf({})).toBe("new");
  });

  it("applies only the class of its settings if the operator watches single namespaces", () => {
    const namespaced = (...classes: TtsClass[]) => ({ ...among(...classes), isNamespaced: true });
    const settings = ttsClass("operator-settings", { limits: { allowedServiceTypes: [] } });
    const deployment = ttsDeployment();
    expect(resolveClass(deployment, namespaced())).toMatchObject({ deployment, decision: undefined });
    expect(resolveClass(deployment, namespaced(settings)).decision?.message).toContain(
      "TtsClass operator-settings does not allow the spec: spec.api.service.type is ClusterIP",
    );
    for (const cluster of [namespaced(), namespaced(settings)]) {
      const named = resolveClass(ttsDeployment({ className: "c" }), cluster);
      expect(named).toMatchObject({ isFrozen: true, decision: { reason: "ClassNotFound" } });
      expect(named.decision?.message).toContain("this operator watches single namespaces");
    }
    const { record } = resolveClass(deployment, namespaced(ttsClass("operator-settings")));
    const later = withStatus(deployment, { class: record });
    expect(resolveClass(later, namespaced())).toMatchObject({ decision: undefined, isFrozen: false });
  });

  it("changes no child of a TtsDeployment that the class has never accepted", () => {
    const strict = ttsClass("c", { limits: { allowedServiceTypes: [] } });
    const deployment = ttsDeployment({ className: "c" });
    for (const status of [{}, renderedAt(1)]) {
      const { isFrozen, decision } = resolveClass(withStatus(deployment, status, 2), among(strict));
      expect(isFrozen).toBe(true);
      expect(decision).toMatchObject({ accepted: false, reason: "ClassLimitExceeded", isCurrent: false });
      expect(decision?.message).toMatch(
        /^TtsClass c does not allow the spec: spec\.api\.service\.type is ClusterIP, but the class allows no value\./,
      );
    }
  });

  it("keeps the spec that was rendered before the first default class was created", () => {
    const strict = ttsClass("c", { limits: { allowedServiceTypes: [] } }, isDefault);
    const before = withStatus(ttsDeployment(), renderedAt(1));
    const resolved = resolveClass(before, among(strict));
    expect(resolved).toMatchObject({ isFrozen: false, decision: { accepted: false, isCurrent: true } });
    expect(resolved.deployment.spec).toEqual(before.spec);
  });

  const accepted = (record: ClassRecord | undefined) => ({ ...renderedAt(1), class: record });

  it("keeps the accepted spec and its defaults while the class refuses a change or does not exist", () => {
    const gold = ttsClass("gold", {
      defaults: { priorityClassName: "speech" },
      limits: { allowedServiceTypes: ["ClusterIP"] },
    });
    const first = resolveClass(ttsDeployment({ className: "gold" }), among(gold));
    expect(first.decision).toMatchObject({ accepted: true, isCurrent: true });
    const changed = ttsDeployment({ className: "gold", api: { service: { type: "NodePort" }, replicas: 5 } });
    for (const cluster of [among(gold), alone]) {
      const { deployment, decision, isFrozen, record } = resolveClass(
        withStatus(changed, accepted(first.record), 2),
        cluster,
      );
      expect(isFrozen).toBe(false);
      expect(deployment.spec).toEqual(first.deployment.spec);
      expect(decision).toMatchObject({ accepted: false, isCurrent: false });
      expect(record).toEqual(first.record);
    }
  });

  it("keeps the accepted spec of a default class that was deleted, until another class is the default", () => {
    const shared = ttsClass("shared", { defaults: { priorityClassName: "speech" } }, isDefault);
    const first = resolveClass(ttsDeployment(), among(shared));
    const later = withStatus(ttsDeployment(), accepted(first.record));
    const { deployment, decision } = resolveClass(later, alone);
    expect(deployment.spec).toEqual(first.deployment.spec);
    expect(decision).toMatchObject({ reason: "ClassNotFound", isCurrent: true });
    expect(resolveClass(later, among(ttsClass("other", {}, isDefault))).decision).toMatchObject({
      accepted: true,
    });
  });

  it("applies no class after spec.className was removed", () => {
    const first = resolveClass(ttsDeployment({ className: "gold" }), among(ttsClass("gold")));
    const plain = withStatus(ttsDeployment(), accepted(first.record), 2);
    expect(resolveClass(plain, among(ttsClass("gold")))).toMatchObject({
      decision: undefined,
      isFrozen: false,
    });
  });

  it("refuses a profile without a class", () => {
    const { isFrozen, decision } = resolveClass(
      ttsDeployment({}, [{ ...mist, acceleratorProfile: "l4" }]),
      alone,
    );
    expect(isFrozen).toBe(true);
    expect(decision?.message).toContain("spec.models[0].acceleratorProfile is l4, but no TtsClass applies");
  });

  it("ignores an accepted spec in the status that is not valid", () => {
    for (const spec of ["{", "{}", "null"]) {
      const record = { name: "gold", isDefault: false, generation: 1, spec };
      const broken = withStatus(ttsDeployment({ className: "gold" }), { class: record });
      expect(resolveClass(broken, alone).isFrozen).toBe(true);
      expect(storedShare(broken)).toBeUndefined();
    }
  });
});

describe("resolveClass without a way around the sums", () => {
  const four = ttsClass("c", { limits: { maxReplicasPerNamespace: 4 } });
  const sized = (replicas: number, more: Json = {}) =>
    ttsDeployment({ className: "c", license: undefined, ...more }, [{ ...mist, replicas }]);
  const recordOf = (deployment: TtsDeployment, cluster = among(ttsClass("c"))) =>
    resolveClass(deployment, cluster).record;
  const replicasOf = ({ deployment }: { deployment: TtsDeployment }) => deployment.spec.models[0]?.replicas;

  it("counts the accepted spec of a suspended TtsDeployment, which keeps its pods", () => {
    const accepted = { class: recordOf(sized(3)) };
    const suspended = withStatus(sized(0, { suspend: true }), accepted, 2);
    const { share, record } = resolveClass(suspended, among(four));
    expect(share).toEqual({ className: "c", use: { replicas: 4, gpus: 0 } });
    expect(record).toEqual(accepted.class);
    const moved = withStatus(sized(0, { suspend: true, className: "other" }), accepted, 2);
    expect(resolveClass(moved, among(four, ttsClass("other"))).share).toEqual(share);
  });

  it("applies a spec that requests less than before, although the namespace is still over the sum", () => {
    const before = { ...renderedAt(1), class: recordOf(sized(9)) };
    const less = resolveClass(withStatus(sized(7), before, 2), among(four));
    expect(replicasOf(less)).toBe(7);
    expect(less.decision).toMatchObject({
      accepted: false,
      isCurrent: true,
      message: expect.stringMatching(/requests 8 pods, but the class allows 4 .* is applied nevertheless/),
    });
    expect(less.share?.use.replicas).toBe(8);
    const again = resolveClass(withStatus(sized(7), { ...before, class: less.record }, 2), among(four));
    expect(again).toEqual({ ...less, deployment: expect.anything() });
    const more = resolveClass(withStatus(sized(8), { ...before, class: less.record }, 3), among(four));
    expect(replicasOf(more)).toBe(7);
    expect(more.decision).toMatchObject({ accepted: false, isCurrent: false });
  });

  it("compares with the recorded share, because the status may be older", () => {
    const before = { ...renderedAt(1), class: recordOf(sized(9)) };
    const own = { className: "c", use: { replicas: 6, gpus: 0 } };
    const again = resolveClass(withStatus(sized(9), before, 3), { ...among(four), own });
    expect(again.decision).toMatchObject({ accepted: false, isCurrent: false });
  });

  it("refuses a spec that requests fewer pods and more devices", () => {
    const gpus = (replicas: number, count: number) =>
      ttsDeployment({ className: "c" }, [{ ...mist, replicas, accelerator: { count } }]);
    const none = ttsClass("c", { limits: { maxGpusPerNamespace: 0 } });
    const before = { ...renderedAt(1), class: recordOf(gpus(3, 1)) };
    expect(replicasOf(resolveClass(withStatus(gpus(2, 2), before, 2), among(none)))).toBe(3);
    expect(replicasOf(resolveClass(withStatus(gpus(2, 1), before, 2), among(none)))).toBe(2);
  });

  it("keeps the recorded spec when the first edit that names a class is refused", () => {
    const plain = ttsDeployment({ license: undefined }, [{ ...mist, replicas: 3 }]);
    const before = { ...renderedAt(1), class: recordOf(plain, alone) };
    for (const cluster of [among(four), alone]) {
      const { isFrozen, share, record, ...resolved } = resolveClass(withStatus(sized(9), before, 2), cluster);
      expect(isFrozen).toBe(false);
      expect(replicasOf(resolved)).toBe(3);
      expect(share).toEqual({ className: "c", use: { replicas: 4, gpus: 0 } });
      expect(storedShare(withStatus(sized(9), { class: record }))).toEqual(share);
    }
  });

  it("keeps the accepted spec while classes cannot be read", () => {
    const unreadable = { ...alone, classes: undefined };
    const accepted = { ...renderedAt(1), class: recordOf(ttsDeployment(), alone) };
    const changed = ttsDeployment({ api: { replicas: 9 } });
    const kept = resolveClass(withStatus(changed, accepted, 2), unreadable);
    expect(kept).toMatchObject({
      isFrozen: false,
      decision: { reason: "ClassesUnreadable", isCurrent: false },
      deployment: { spec: { api: { replicas: 1 } } },
    });
    expect(resolveClass(withStatus(ttsDeployment(), accepted), unreadable).decision?.isCurrent).toBe(true);
    expect(resolveClass(ttsDeployment(), unreadable).isFrozen).toBe(true);
  });
});

describe("ClassAllocations", () => {
  it("adds the recorded shares, and the shares of statuses that were not recorded yet", () => {
    const allocations = new ClassAllocations();
    const share = (className: string, replicas: number) => ({ className, use: { replicas, gpus: 1 } });
    allocations.take("ns/a", share("gold", 2));
    allocations.take("ns/b", undefined);
    allocations.take("ns/c", share("other", 8));
    const stored = () => share("gold", 16);
    expect(allocations.useOf("gold", ["ns/a", "ns/b", "ns/c"], stored)).toEqual({ replicas: 2, gpus: 1 });
    expect(allocations.useOf("gold", ["ns/a", "ns/b", "ns/d"], stored)).toEqual({ replicas: 18, gpus: 2 });
    allocations.forget("ns/b");
    expect(allocations.useOf("gold", ["ns/b"], stored)).toEqual({ replicas: 16, gpus: 1 });
  });
});
