import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { vllmFlagsWithoutValue, vllmFlagsWithValue } from "../../../config/contract/vllm-flags.ts";
import { definitions } from "../../../crds/definitions.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";

/**
 * Tests every CEL rule of the CRDs with a value that violates the rule. The keys are the messages of the
 * rules. The last test fails if a rule is missing in this file.
 */

type Json = { [name: string]: unknown };
type Violation = { spec?: Json; model?: Json; name?: string; cache?: Json };

let admin: ClusterClient;
let namespace: string;

beforeAll(async () => {
  admin = await adminClient(inject("controlPlane"));
  namespace = await freshNamespace(admin, "rules");
});

afterAll(() => admin.close());

const model = (more: Json): Violation => ({ model: more });
const api = (more: Json): Violation => ({ spec: { api: more } });
const license = (more: Json): Violation => ({ spec: { license: { secretRef: { name: "l" }, ...more } } });
const scaling = (more: Json) => model({ scaling: more });
const accelerator = (more: Json) => model({ accelerator: more });
const toleration = (more: Json) => accelerator({ tolerations: [more] });
const cache = (more: Json) => model({ cache: more });
const source = (more: Json) => cache({ emptyDir: {}, sources: [more] });
/** The spec of a TtsModelCache. */
const modelCache = (more: Json, name = "voices"): Violation => ({ cache: { ...cacheSpec, ...more }, name });
const cacheSpec = { preset: "kokoro-82m", storage: { claim: { size: "1Gi" } } };
const existingClaim = { claimName: "mine" };
const rollout = (more: Json) => model({ rollout: more });
const parameters = (flags: Json) => model({ kind: "arcana", engine: { type: "vllm", parameters: flags } });
const night = { days: ["Sat"], start: "02:00", duration: "1h" };
const telemetry = (more: Json): Violation => ({ spec: { telemetry: more } });
const exporter = { endpoint: "http://otlp.example.com:4317" };
const collector = (more: Json) => telemetry({ collector: { enabled: true, exporter, ...more } });
const bearer = { secretRef: { name: "s" } };
const sqlite = { persistentVolumeClaim: { claimName: "c" } };
const postgres = { url: "postgres://svc-tts@db/tts?sslmode=disable" };
const wrongName = { "a b": "c" };
const ingress = (more: Json) => api({ route: { hostnames: ["a.example"], ingress: {}, ...more } });
const steps = (...weights: number[]) =>
  rollout({ canary: { steps: weights.map((weight) => ({ weight })), analysis: {} } });

const violations: Record<string, Violation> = {
  "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter: the names of Services contain it":
    {
      name: "1st",
    },
  "api.replicas must not exceed api.scaling.maxReplicas": api({ replicas: 3, scaling: { maxReplicas: 2 } }),
  "api.keys must have secretRef, sqlite or postgres": api({ keys: {} }),
  "api.keys must not have both sqlite and postgres: keys are stored in one database": api({
    keys: { sqlite, postgres },
  }),
  "api.keys.postgres.caSecretRef needs ?sslmode=verify-full in api.keys.postgres.url: other modes do not verify certificates":
    api({ keys: { postgres: { ...postgres, caSecretRef: { name: "ca" } } } }),
  "api.keys.sqlite allows one API pod only: set api.replicas to 1 and leave api.scaling out, or use api.keys.postgres":
    api({ replicas: 2, keys: { sqlite } }),
  "api.keys.postgres.url must end in ?sslmode=verify-full or, on a trusted network, in ?sslmode=no-verify or ?sslmode=disable":
    api({
      keys: { postgres: { url: "postgres://svc-tts@db/tts" } },
    }),
  "api.dashboard.url must be an https URL, because http does not encrypt passwords: http is allowed only for localhost and 127.0.0.1":
    api({ keys: { postgres }, dashboard: { url: "http://localhost.example.com" } }),
  "api.dashboard needs api.keys.sqlite or api.keys.postgres, which store its users and keys": api({
    keys: { secretRef: { name: "k" } },
    dashboard: { url: "https://tts.example.com" },
  }),
  "api.dashboard.oidc.groups must name a team for members and viewers": api({
    keys: { postgres },
    dashboard: {
      url: "https://tts.example.com",
      oidc: {
        issuer: "https://login.example.com",
        clientId: "tts",
        groups: [{ group: "speech", role: "member" }],
      },
    },
  }),
  "resources.requests must not exceed resources.limits": api({
    resources: { requests: { cpu: 2 }, limits: { cpu: 1 } },
  }),
  "resources may contain cpu, memory, ephemeral-storage and hugepages-…: request devices with accelerator":
    model({
      resources: { limits: { "nvidia.com/gpu": 1 } },
    }),
  "the keys of podTemplate.metadata.labels must be names of labels, for example example.com/name": model({
    podTemplate: { metadata: { labels: wrongName } },
  }),
  "podTemplate.metadata.labels must not contain labels of the operator (tts.svc.dev/…, app.kubernetes.io/…), which select the pods":
    api({ podTemplate: { metadata: { labels: { "app.kubernetes.io/name": "x" } } } }),
  "the keys of podTemplate.metadata.annotations must be names of annotations, for example example.com/name":
    model({
      podTemplate: { metadata: { annotations: wrongName } },
    }),
  "the keys of api.service.annotations must be names of annotations, for example example.com/name": api({
    service: { annotations: wrongName },
  }),
  "api.route must have exactly one of gatewayRef and ingress": ingress({ gatewayRef: { name: "g" } }),
  "the keys of api.route.ingress.annotations must be names of annotations, for example example.com/name":
    ingress({
      ingress: { annotations: wrongName },
    }),
  "license.gracePeriod must be at most 2160h (90 days)": license({ gracePeriod: "2161h" }),
  "license.endpoint must be an https URL": license({ endpoint: "https://[licenses" }),
  "license.checkInterval must be from 1m to 720h (30 days)": license({ checkInterval: "59s" }),
  "models must not have both replicas and scaling: only one of them sets the number of replicas": model({
    replicas: 1,
    scaling: { maxReplicas: 2 },
  }),
  "models[].name must not end in `-canary`: the names of canaries have this ending": model({
    name: "my-canary",
  }),
  "models[].name must be at most 13 characters if rollout.canary is set: the name of the canary is longer":
    model({
      name: "a".repeat(14),
      ...steps(50).model,
    }),
  "models[].name must not be `api`: the children of the API tier have this name": model({ name: "api" }),
  "scaling.maxReplicas is required unless provider is External": scaling({}),
  "scaling with provider External must not have minReplicas, maxReplicas, target or behavior: the external controller decides":
    scaling({
      provider: "External",
      minReplicas: 1,
    }),
  "scaling.minReplicas must not exceed scaling.maxReplicas": scaling({ minReplicas: 3, maxReplicas: 2 }),
  "scaling.target.initialLatencyMs needs provider Builtin": scaling({
    provider: "KEDA",
    maxReplicas: 2,
    target: { initialLatencyMs: 300 },
  }),
  "models[].engine needs kind arcana: for kind mist the voice selects the engine": model({
    engine: { type: "mini" },
  }),
  "models[].env must not set SVC_TTS_ARCANA_GENERATOR or GENERATOR_VLLM_ARGS if engine is set: engine sets the variable":
    model({
      kind: "arcana",
      engine: { type: "vllm" },
      env: [{ name: "GENERATOR_VLLM_ARGS", value: "--enforce-eager" }],
    }),
  "models[].engine.type kokoro needs cache: the image does not contain the model. If a volume of podTemplate contains it, set SVC_TTS_MODELS_DIR in env":
    model({ kind: "arcana", engine: { type: "kokoro" }, env: [{ name: "A", value: "1" }] }),
  "engine.parameters needs engine.type vllm: the parameters are flags of vLLM": model({
    kind: "arcana",
    engine: { type: "mini", parameters: { "max-model-len": "4096" } },
  }),
  "engine.parameters must contain only allowed flags of vLLM, without the leading dashes": parameters({
    "--max-model-len": "4096",
  }),
  [`engine.parameters has an empty value for ${vllmFlagsWithoutValue.join(", ")}, and a value for every other flag`]:
    parameters({ "enforce-eager": "true" }),
  "env must not have both value and valueFrom": model({
    env: [{ name: "A", value: "1", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } }],
  }),
  "env must not set a variable that the operator sets: use the field of the spec, for example maxConcurrentStreams or drain":
    model({
      env: [{ name: "POD_NAME", value: "1" }],
    }),
  "valueFrom must name exactly one of secretKeyRef and configMapKeyRef": model({
    env: [{ name: "A", valueFrom: {} }],
  }),
  "accelerator must not have both mig and claimTemplateName: the claim selects its own slices": accelerator({
    mig: "1g.10gb",
    claimTemplateName: "a",
  }),
  "accelerator.mig replaces resourceName: leave resourceName out": accelerator({
    mig: "1g.10gb",
    resourceName: "example.com/gpu",
  }),
  "accelerator.count must be 1 for a time-sliced device: requesting more shares does not allocate more of the device":
    accelerator({
      resourceName: "nvidia.com/gpu.shared",
      count: 2,
    }),
  "the keys of accelerator.nodeSelector must be names of labels, for example example.com/name": accelerator({
    nodeSelector: wrongName,
  }),
  "models must not have both accelerator and acceleratorProfile: the profile sets the accelerator": model({
    accelerator: {},
    acceleratorProfile: "l4",
  }),
  "tolerations without a key must have operator Exists": toleration({ effect: "NoSchedule" }),
  "tolerations with operator Exists must have no value": toleration({
    key: "a",
    operator: "Exists",
    value: "b",
  }),
  "tolerations.tolerationSeconds needs effect NoExecute": toleration({
    key: "a",
    operator: "Exists",
    tolerationSeconds: 5,
  }),
  "cache must have exactly one of name, imageVolume, persistentVolumeClaim and emptyDir": cache({}),
  "cache.name must not have sources: the TtsModelCache has its own sources": cache({
    name: "voices",
    sources: [{ url: "hf://o/r" }],
  }),
  "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter: the names of its claim and its Jobs contain it":
    modelCache({}, "1st"),
  "spec must have preset, sources or both": modelCache({ preset: undefined }),
  "storage must have exactly one of claim and existingClaim": modelCache({ storage: {} }),
  "the keys of nodeSelector must be names of labels, for example example.com/name": modelCache({
    nodeSelector: wrongName,
  }),
  "cache.imageVolume must not have sources: an image is read-only": cache({
    imageVolume: { reference: "a" },
    sources: [{ url: "hf://o/r" }],
  }),
  "cache.emptyDir needs sources: the volume is empty when the pod starts": cache({ emptyDir: {} }),
  "cache.sources[].sha256 is required for an http:// URL, because plain HTTP does not protect the file from changes: add the digest, or use https://":
    source({
      url: "http://host/a",
    }),
  "cache.sources[].url must not contain a user name or a password: put them into the Secret of secretRef":
    source({
      url: "https://me:pw@host/a",
    }),
  "rollout.maxSurge and rollout.maxUnavailable must not both be zero: no pod could be replaced": rollout({
    maxSurge: "0%",
    maxUnavailable: 0,
  }),
  "rollout.maintenanceWindow.duration must be 10m to 24h": rollout({
    maintenanceWindow: { ...night, duration: "25h" },
  }),
  "rollout.maintenanceWindow.timeZone must be an IANA time zone, for example Europe/Berlin or UTC": rollout({
    maintenanceWindow: { ...night, timeZone: "Europe/Atlantis" },
  }),
  "rollout.canary.steps must increase in weight": steps(50, 10),
  "must be a network, for example 10.0.0.0/8 or 2001:db8::/32": {
    spec: { networkPolicy: { licenseEgress: [{ cidr: "10.0.0.1" }] } },
  },
  "telemetry.endpoint and telemetry.collector.enabled exclude each other: with the collector sidecar, set the backend in telemetry.collector.exporter.endpoint":
    telemetry({ endpoint: "http://otlp.example.com:4317", collector: { enabled: true, exporter } }),
  "must be a URL, for example https://otlp.example.com:4317": telemetry({ endpoint: "http://" }),
  "the keys of telemetry.resourceAttributes must be names of attributes, for example deployment.environment.name":
    telemetry({
      resourceAttributes: wrongName,
    }),
  "telemetry.collector.exporter is required with telemetry.collector.enabled: set the endpoint of the backend":
    telemetry({
      collector: { enabled: true },
    }),
  "telemetry.collector.auth with gRPC needs an https:// endpoint: credentials must not be sent in clear text":
    collector({
      exporter: { ...exporter, protocol: "grpc" },
      auth: { bearer },
    }),
  "telemetry.collector.auth must have at most one of bearer, basic, oauth2 and headers": collector({
    auth: { bearer, basic: { secretRef: { name: "s" } } },
  }),
  "the keys of telemetry.serviceMonitor.labels must be names of labels, for example example.com/name":
    telemetry({
      serviceMonitor: { enabled: true, labels: wrongName },
    }),
};

function deployment({ spec = {}, model: more = {}, name = "demo", ...other }: Violation): KubernetesObject {
  const apiVersion = "tts.svc.dev/v1alpha1";
  if (other.cache)
    return { apiVersion, kind: "TtsModelCache", metadata: { name, namespace }, spec: other.cache };
  const models = [{ name: "mist", kind: "mist", ...more }];
  return {
    apiVersion,
    kind: "TtsDeployment",
    metadata: { name, namespace },
    spec: { license: { secretRef: { name: "l" } }, models, ...spec },
  };
}

const dryRun = (manifest: KubernetesObject) => admin.apply(manifest, { dryRun: true, manager: "a-test" });

it.each(Object.entries(violations))("%s", async (message, violation) => {
  await expect(dryRun(deployment(violation))).rejects.toThrow(message);
});

it("the error about a forbidden flag of vLLM lists the allowed flags", async () => {
  const manifest = deployment(parameters({ "max-model-len": "4096", "trust-remote-code": "" }));
  await expect(dryRun(manifest)).rejects.toThrow(
    "without the leading dashes: trust-remote-code is none of attention-backend, block-size, ",
  );
});

it("engine.parameters accepts every flag of vLLM that the model tier accepts", async () => {
  const flags = [
    ...vllmFlagsWithValue.map((flag) => [flag, "1"]),
    ...vllmFlagsWithoutValue.map((flag) => [flag, ""]),
  ];
  await dryRun(deployment(parameters(Object.fromEntries(flags))));
});

it("a pool with the engine kokoro may have its model in a cache or in a folder of its own", async () => {
  const kokoro = { kind: "arcana", engine: { type: "kokoro" } };
  const claim = { persistentVolumeClaim: { claimName: "natural-voices" } };
  await dryRun(deployment(model({ ...kokoro, cache: claim })));
  await dryRun(deployment(model({ ...kokoro, env: [{ name: "SVC_TTS_MODELS_DIR", value: "/models" }] })));
});

it("a dashboard.url accepts plain HTTP for localhost", async () => {
  const keys = { postgres };
  for (const url of ["http://localhost:8000", "http://127.0.0.1"])
    await dryRun(deployment(api({ keys, dashboard: { url } })));
});

const changes: Record<string, [KubernetesObject["kind"], Json, Json]> = {
  "kind of a pool must not change: add a pool under another name and remove this one": [
    "TtsDeployment",
    { license: { secretRef: { name: "l" } }, models: [{ name: "mist", kind: "mist" }] },
    { license: { secretRef: { name: "l" } }, models: [{ name: "mist", kind: "arcana" }] },
  ],
  "deployment must not change: create another object instead": [
    "TtsModelPool",
    { deployment: "a", pool: "mist", kind: "mist" },
    { deployment: "b", pool: "mist", kind: "mist" },
  ],
  "storage.claim.size must not decrease: Kubernetes cannot shrink a volume": [
    "TtsModelCache",
    { ...cacheSpec, storage: { claim: { size: "1Gi" } } },
    { ...cacheSpec, storage: { claim: { size: "1000Mi" } } },
  ],
  "storage.claim.storageClassName and storage.claim.accessModes must not change: create another TtsModelCache instead":
    [
      "TtsModelCache",
      { ...cacheSpec, storage: { claim: { size: "1Gi" } } },
      { ...cacheSpec, storage: { claim: { size: "1Gi", storageClassName: "fast" } } },
    ],
  "storage.existingClaim.claimName must not change: create another object instead": [
    "TtsModelCache",
    { ...cacheSpec, storage: { existingClaim } },
    { ...cacheSpec, storage: { existingClaim: { claimName: "yours" } } },
  ],
  "storage must not change between claim and existingClaim: create another TtsModelCache instead": [
    "TtsModelCache",
    { ...cacheSpec, storage: { claim: { size: "1Gi" } } },
    { ...cacheSpec, storage: { existingClaim } },
  ],
};

it.each(Object.entries(changes))("%s", async (message, [kind, before, after]) => {
  const metadata = { name: `changed-${Object.keys(changes).indexOf(message)}`, namespace };
  const object = (spec: Json) => ({ apiVersion: "tts.svc.dev/v1alpha1", kind, metadata, spec });
  await admin.apply(object(before), { manager: "a-test" });
  await expect(dryRun(object(after))).rejects.toThrow(message);
});

it("every rule is tested", () => {
  const known = [...Object.keys(violations), ...Object.keys(changes)].sort();
  expect([...new Set(definitions.flatMap(messagesOf))].sort()).toEqual(known);
});

function messagesOf(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  const own = (node as { "x-kubernetes-validations"?: { message: string }[] })["x-kubernetes-validations"];
  return [...(own ?? []).map(({ message }) => message), ...Object.values(node).flatMap(messagesOf)];
}
