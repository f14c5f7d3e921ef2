import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { definitions } from "../../../crds/definitions.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";

/** Every CEL rule of the CRDs, by its message, and a value that breaks it. A rule that is missing here fails the last test. */

type Json = { [name: string]: unknown };
type Breach = { spec?: Json; model?: Json; name?: string };

let admin: ClusterClient;
let namespace: string;

beforeAll(async () => {
  admin = await adminClient(inject("controlPlane"));
  namespace = await freshNamespace(admin, "rules");
});

afterAll(() => admin.close());

const model = (more: Json): Breach => ({ model: more });
const api = (more: Json): Breach => ({ spec: { api: more } });
const license = (more: Json): Breach => ({ spec: { license: { secretRef: { name: "l" }, ...more } } });
const scaling = (more: Json) => model({ scaling: more });
const accelerator = (more: Json) => model({ accelerator: more });
const toleration = (more: Json) => accelerator({ tolerations: [more] });
const cache = (more: Json) => model({ cache: more });
const source = (more: Json) => cache({ emptyDir: {}, sources: [more] });
const rollout = (more: Json) => model({ rollout: more });
const night = { days: ["Sat"], start: "02:00", duration: "1h" };
const telemetry = (more: Json): Breach => ({ spec: { telemetry: more } });
const exporter = { endpoint: "http://otlp.example.com:4317" };
const collector = (more: Json) => telemetry({ collector: { enabled: true, exporter, ...more } });
const bearer = { secretRef: { name: "s" } };
const sqlite = { persistentVolumeClaim: { claimName: "c" } };
const postgres = { url: "postgres://svc-tts@db/tts" };
const wrongName = { "a b": "c" };
const ingress = (more: Json) => api({ route: { hostnames: ["a.example"], ingress: {}, ...more } });
const steps = (...weights: number[]) =>
  rollout({ canary: { steps: weights.map((weight) => ({ weight })), analysis: {} } });

const breaches: Record<string, Breach> = {
  "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter: Services are named after it":
    {
      name: "1st",
    },
  "api.replicas must not exceed api.scaling.maxReplicas": api({ replicas: 3, scaling: { maxReplicas: 2 } }),
  "api.keys must have secretRef, sqlite or postgres": api({ keys: {} }),
  "api.keys takes sqlite or postgres, not both: keys are in one database": api({
    keys: { sqlite, postgres },
  }),
  "api.keys.postgres.caSecretRef needs ?sslmode=verify-full in api.keys.postgres.url: nothing else is judged by it":
    api({ keys: { postgres: { ...postgres, caSecretRef: { name: "ca" } } } }),
  "api.keys.sqlite takes one API pod: set api.replicas to 1 and leave api.scaling out, or use api.keys.postgres":
    api({ replicas: 2, keys: { sqlite } }),
  "api.dashboard needs api.keys.sqlite or api.keys.postgres: people and keys are kept there": api({
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
  "resources must be cpu, memory, ephemeral-storage or hugepages-…; a model asks for devices by accelerator":
    model({
      resources: { limits: { "nvidia.com/gpu": 1 } },
    }),
  "the keys of podTemplate.metadata.labels must be names of labels, as example.com/name": model({
    podTemplate: { metadata: { labels: wrongName } },
  }),
  "podTemplate.metadata.labels must not be those of the operator (tts.svc.dev/…, app.kubernetes.io/…), which select the pods":
    api({ podTemplate: { metadata: { labels: { "app.kubernetes.io/name": "x" } } } }),
  "the keys of podTemplate.metadata.annotations must be names of annotations, as example.com/name": model({
    podTemplate: { metadata: { annotations: wrongName } },
  }),
  "the keys of api.service.annotations must be names of annotations, as example.com/name": api({
    service: { annotations: wrongName },
  }),
  "api.route must have exactly one of gatewayRef and ingress": ingress({ gatewayRef: { name: "g" } }),
  "the keys of api.route.ingress.annotations must be names of annotations, as example.com/name": ingress({
    ingress: { annotations: wrongName },
  }),
  "license.gracePeriod must be at most 2160h (90 days)": license({ gracePeriod: "2161h" }),
  "license.endpoint must be an https URL": license({ endpoint: "https://[licenses" }),
  "license.checkInterval must be from 1m to 720h (30 days)": license({ checkInterval: "59s" }),
  "models take replicas or scaling, not both: who scales decides": model({
    replicas: 1,
    scaling: { maxReplicas: 2 },
  }),
  "models[].name must not end in `-canary`: canaries of pools are named so": model({ name: "my-canary" }),
  "models[].name must be at most 13 characters where rollout.canary is set: its canary's name is longer":
    model({
      name: "a".repeat(14),
      ...steps(50).model,
    }),
  "models[].name must not be `api`: the API tier's children are named so": model({ name: "api" }),
  "scaling.maxReplicas is needed, unless provider is External": scaling({}),
  "scaling with provider External takes no minReplicas, maxReplicas, target or behavior: whoever scales decides":
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
  "models[].engine is for kind arcana: what speaks mist follows from the voice": model({
    engine: { type: "mini" },
  }),
  "models[].env must not set SVC_TTS_ARCANA_GENERATOR or GENERATOR_VLLM_ARGS where engine says it": model({
    kind: "arcana",
    engine: { type: "vllm" },
    env: [{ name: "GENERATOR_VLLM_ARGS", value: "--enforce-eager" }],
  }),
  "engine.parameters are flags of vLLM: they need engine.type vllm": model({
    kind: "arcana",
    engine: { type: "mini", parameters: { "max-model-len": "4096" } },
  }),
  "the keys of engine.parameters must be flags of vLLM without their dashes, as max-model-len": model({
    kind: "arcana",
    engine: { type: "vllm", parameters: { "--max-model-len": "4096" } },
  }),
  "env takes value or valueFrom, not both": model({
    env: [{ name: "A", value: "1", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } }],
  }),
  "env must not set a variable that the operator sets; use the field for it, as maxConcurrentStreams or drain":
    model({
      env: [{ name: "POD_NAME", value: "1" }],
    }),
  "valueFrom must name exactly one of secretKeyRef and configMapKeyRef": model({
    env: [{ name: "A", valueFrom: {} }],
  }),
  "accelerator takes mig or claimTemplateName, not both: a claim chooses its slices itself": accelerator({
    mig: "1g.10gb",
    claimTemplateName: "a",
  }),
  "accelerator.mig takes the place of resourceName: leave resourceName out": accelerator({
    mig: "1g.10gb",
    resourceName: "example.com/gpu",
  }),
  "accelerator.count must be 1 for a time-shared device: more shares give no more of it": accelerator({
    resourceName: "nvidia.com/gpu.shared",
    count: 2,
  }),
  "the keys of accelerator.nodeSelector must be names of labels, as example.com/name": accelerator({
    nodeSelector: wrongName,
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
  "cache must have exactly one of imageVolume, persistentVolumeClaim and emptyDir": cache({}),
  "cache.imageVolume takes no sources: an image cannot be written to": cache({
    imageVolume: { reference: "a" },
    sources: [{ url: "hf://o/r" }],
  }),
  "cache.emptyDir needs sources: it starts empty": cache({ emptyDir: {} }),
  "cache.sources[].sha256 must be given where url is http://: nobody else vouches for the file": source({
    url: "http://host/a",
  }),
  "cache.sources[].url must hold no user and password: put them into the Secret of secretRef": source({
    url: "https://me:pw@host/a",
  }),
  "rollout.maxSurge and rollout.maxUnavailable must not both be zero: no pod could ever be replaced": rollout(
    {
      maxSurge: "0%",
      maxUnavailable: 0,
    },
  ),
  "rollout.maintenanceWindow.duration must be 10m to 24h": rollout({
    maintenanceWindow: { ...night, duration: "25h" },
  }),
  "rollout.maintenanceWindow.timeZone must be a time zone, as Europe/Berlin or UTC": rollout({
    maintenanceWindow: { ...night, timeZone: "Europe/Atlantis" },
  }),
  "rollout.canary.steps must rise in weight": steps(50, 10),
  "must be a network, as 10.0.0.0/8 or 2001:db8::/32": {
    spec: { networkPolicy: { licenseEgress: [{ cidr: "10.0.0.1" }] } },
  },
  "telemetry.endpoint and telemetry.collector.enabled exclude each other: with a collector of its own, name the backend in telemetry.collector.exporter.endpoint":
    telemetry({ endpoint: "http://otlp.example.com:4317", collector: { enabled: true, exporter } }),
  "must be a URL, as https://otlp.example.com:4317": telemetry({ endpoint: "http://" }),
  "the keys of telemetry.resourceAttributes must be names of attributes, as deployment.environment.name":
    telemetry({
      resourceAttributes: wrongName,
    }),
  "telemetry.collector.exporter must say where the collector sends to": telemetry({
    collector: { enabled: true },
  }),
  "telemetry.collector.auth needs an https:// endpoint by gRPC, which sends no credentials in the clear":
    collector({
      exporter: { ...exporter, protocol: "grpc" },
      auth: { bearer },
    }),
  "telemetry.collector.auth takes one of bearer, basic, oauth2 and headers": collector({
    auth: { bearer, basic: { secretRef: { name: "s" } } },
  }),
  "the keys of telemetry.serviceMonitor.labels must be names of labels, as example.com/name": telemetry({
    serviceMonitor: { enabled: true, labels: wrongName },
  }),
};

function deployment({ spec = {}, model: more = {}, name = "demo" }: Breach): KubernetesObject {
  const apiVersion = "tts.svc.dev/v1alpha1";
  const models = [{ name: "mist", kind: "mist", ...more }];
  return {
    apiVersion,
    kind: "TtsDeployment",
    metadata: { name, namespace },
    spec: { license: { secretRef: { name: "l" } }, models, ...spec },
  };
}

const sayNo = (manifest: KubernetesObject) => admin.apply(manifest, { dryRun: true, manager: "a-test" });

it.each(Object.entries(breaches))("%s", async (message, breach) => {
  await expect(sayNo(deployment(breach))).rejects.toThrow(message);
});

const changes: Record<string, [KubernetesObject["kind"], Json, Json]> = {
  "kind of a pool must not change: add a pool under another name and remove this one": [
    "TtsDeployment",
    { license: { secretRef: { name: "l" } }, models: [{ name: "mist", kind: "mist" }] },
    { license: { secretRef: { name: "l" } }, models: [{ name: "mist", kind: "arcana" }] },
  ],
  "deployment must not change: make another object instead": [
    "TtsModelPool",
    { deployment: "a", pool: "mist", kind: "mist" },
    { deployment: "b", pool: "mist", kind: "mist" },
  ],
};

it.each(Object.entries(changes))("%s", async (message, [kind, before, after]) => {
  const metadata = { name: "changed", namespace };
  const object = (spec: Json) => ({ apiVersion: "tts.svc.dev/v1alpha1", kind, metadata, spec });
  await admin.apply(object(before), { manager: "a-test" });
  await expect(sayNo(object(after))).rejects.toThrow(message);
});

it("these are all rules that there are", () => {
  const known = [...Object.keys(breaches), ...Object.keys(changes)].sort();
  expect([...new Set(definitions.flatMap(messagesOf))].sort()).toEqual(known);
});

function messagesOf(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  const own = (node as { "x-kubernetes-validations"?: { message: string }[] })["x-kubernetes-validations"];
  return [...(own ?? []).map(({ message }) => message), ...Object.values(node).flatMap(messagesOf)];
}
