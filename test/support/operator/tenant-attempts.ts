/**
 * Attempts of a tenant to exceed its class. Each of them is refused, by the API server when it is applied, or by
 * the operator when it is reconciled.
 */

export type Json = { [name: string]: unknown };

/** A TtsDeployment that the tenant applies. */
export interface Attempt {
  readonly what: string;
  /** A part of the message that the tenant sees. */
  readonly message: string;
  readonly spec?: Json;
  readonly models?: Json[];
}

const mist = { name: "mist", kind: "mist", replicas: 1 };

export const tenantClass = {
  defaults: { images: { mist: "registry.example/speech/mist:1" } },
  acceleratorProfiles: [
    { name: "l4", accelerator: { nodeSelector: { gpu: "l4" } } },
    { name: "dra", accelerator: { claimTemplateName: "gpus" } },
  ],
  limits: {
    allowedHostnames: ["*.a.example"],
    allowedServiceTypes: ["ClusterIP"],
    allowedAnnotations: ["a.example/*"],
    allowedImages: ["registry.example/speech", "images.example"],
    allowedModelSources: ["https://models.example/a/", "hf://hexgrad", "oci://images.example"],
    allowedEnv: ["LOG_*"],
    allowedSecrets: ["tts-*"],
    allowedClaims: ["models"],
    podTemplate: "Safe",
    accelerators: "Profiles",
    maxReplicasPerNamespace: 6,
    maxGpusPerNamespace: 2,
  },
};

const route = (hostname: string, ingress: Json = {}) => ({
  api: { route: { hostnames: [hostname], ingress } },
});
const apiPod = (spec: Json) => ({ api: { podTemplate: { spec } } });
const model = (more: Json): { models: Json[] } => ({ models: [{ ...mist, ...more }] });
const modelPod = (spec: Json) => model({ podTemplate: { spec } });
const source = (more: Json) => model({ cache: { emptyDir: {}, sources: [more] } });
const hostPath = { volumes: [{ name: "root", hostPath: { path: "/" } }] };

/** Attempts that the API server refuses. */
export const refusedAtApply: readonly Attempt[] = [
  ...["tts.b.example", "a.example", "nota.example", "tts.a.example.evil.example", "*.example"].map(
    (hostname) => ({
      what: `host name \`${hostname}\``,
      spec: route(hostname),
      message: `spec.api.route.hostnames is ${hostname}, but the class allows *.a.example`,
    }),
  ),
  ...["NodePort", "LoadBalancer"].map((type) => ({
    what: `Service type ${type}`,
    spec: { api: { service: { type } } },
    message: `spec.api.service.type is ${type}, but the class allows ClusterIP`,
  })),
  {
    what: "annotation of the Service that claims a DNS name",
    spec: { api: { service: { annotations: { "external-dns.example/hostname": "tts.b.example" } } } },
    message: "spec.api.service.annotations contains external-dns.example/hostname",
  },
  {
    what: "annotation of the Ingress with a configuration snippet",
    spec: route("tts.a.example", { annotations: { "nginx.example/configuration-snippet": "return 200;" } }),
    message: "spec.api.route.ingress.annotations contains nginx.example/configuration-snippet",
  },
  {
    what: "annotation of API pods that injects a sidecar",
    spec: { api: { podTemplate: { metadata: { annotations: { "sidecar.example/inject": "true" } } } } },
    message: "spec.api.podTemplate.metadata.annotations contains sidecar.example/inject",
  },
  {
    what: "annotation of model pods",
    ...model({ podTemplate: { metadata: { annotations: { "cni.example/ip": "10.0.0.1" } } } }),
    message: "spec.models[mist].podTemplate.metadata.annotations contains cni.example/ip",
  },
  ...Object.entries({
    "host path": hostPath,
    "host network": { hostNetwork: true },
    "processes of the host": { hostPID: true },
    "another service account": { serviceAccountName: "admin" },
    "a privileged container": { containers: [{ name: "api", securityContext: { privileged: true } }] },
    "an init container": { initContainers: [{ name: "init", image: "evil/init" }] },
    "replacing the whole pod": { $patch: "replace" },
    "a node of its choice": { nodeName: "control-plane" },
  }).map(([what, spec]) => ({
    what: `podTemplate of API pods: ${what}`,
    spec: apiPod(spec),
    message: `spec.api.podTemplate.spec.${Object.keys(spec)[0]} is set, but the class allows only affinity`,
  })),
  {
    what: "podTemplate of model pods: host path",
    ...modelPod(hostPath),
    message: "spec.models[mist].podTemplate.spec.volumes is set",
  },
  {
    what: "podTemplate of model pods: a token of the service account",
    ...modelPod({ automountServiceAccountToken: true }),
    message: "spec.models[mist].podTemplate.spec.automountServiceAccountToken is set",
  },
  ...[
    "evil.example/speech/api:1",
    "registry.example.evil.example/speech/api:1",
    "registry.example/speech-evil/api:1",
    "registry.example:5000/speech/api:1",
    "images.example:5000/api:1",
    "images.example@evil.example/api:1",
  ].map((image) => ({
    what: `image \`${image}\``,
    spec: { api: { image } },
    message: `spec.api.image is ${image}, but the class allows registry.example/speech, images.example`,
  })),
  {
    what: "image of the collector",
    spec: {
      telemetry: { endpoint: "http://otlp.example:4317", collector: { image: "evil.example/collector:1" } },
    },
    message: "spec.telemetry.collector.image is evil.example/collector:1",
  },
  {
    what: "image volume with model files",
    ...model({ cache: { imageVolume: { reference: "evil.example/model:1" } } }),
    message: "spec.models[mist].cache.imageVolume.reference is evil.example/model:1",
  },
  ...[
    "https://evil.example/a/model",
    "https://models.example:8443/a/model",
    "https://models.example/a/../b/model",
    "https://models.example/a/..%2fb/model",
    "hf://hexgrad-evil/model",
    "oci://images.example:5000/model:1",
  ].map((url) => ({
    what: `model source \`${url}\``,
    ...source({ url }),
    message: `spec.models[mist].cache.sources[${url}].url is ${url}`,
  })),
  {
    what: "mirror of an allowed repository",
    ...source({ url: "hf://hexgrad/kokoro", endpoint: "https://mirror.evil.example" }),
    message: "spec.models[mist].cache.sources[hf://hexgrad/kokoro].endpoint is https://mirror.evil.example",
  },
  ...["NODE_OPTIONS", "LD_PRELOAD"].map((name) => ({
    what: `variable ${name}, which loads code`,
    ...model({ env: [{ name, value: "/var/lib/svc-tts/models/evil" }] }),
    message: `spec.models[mist].env[${name}].name is ${name}, but the class allows LOG_*`,
  })),
  {
    what: "variable with the Secret of another application",
    ...model({ env: [{ name: "LOG_LEVEL", valueFrom: { secretKeyRef: { name: "payroll", key: "k" } } }] }),
    message:
      "spec.models[mist].env[LOG_LEVEL].valueFrom.secretKeyRef.name is payroll, but the class allows tts-*",
  },
  {
    what: "Secret of a model source",
    ...source({ url: "https://models.example/a/m", secretRef: { name: "payroll" } }),
    message: "sources[https://models.example/a/m].secretRef.name is payroll",
  },
  {
    what: "Secret in a header that telemetry sends to another host",
    spec: {
      telemetry: {
        collector: {
          enabled: true,
          exporter: { endpoint: "https://evil.example:4317" },
          auth: { headers: [{ name: "x", secretRef: { name: "payroll", key: "k" } }] },
        },
      },
    },
    message: "spec.telemetry.collector.auth.headers[x].secretRef.name is payroll",
  },
  {
    what: "Secret of another TLS certificate",
    spec: { api: { tls: { secretName: "payroll" } } },
    message: "spec.api.tls.secretName is payroll",
  },
  {
    what: "pull Secret of another application",
    spec: { imagePullSecrets: [{ name: "payroll" }] },
    message: "spec.imagePullSecrets[payroll].name is payroll",
  },
  {
    what: "license of another application",
    spec: { license: { secretRef: { name: "payroll" } } },
    message: "spec.license.secretRef.name is payroll",
  },
  {
    what: "claim with files of another application",
    ...model({ cache: { persistentVolumeClaim: { claimName: "payroll" } } }),
    message:
      "spec.models[mist].cache.persistentVolumeClaim.claimName is payroll, but the class allows models",
  },
  {
    what: "claim of the database",
    spec: { api: { keys: { sqlite: { persistentVolumeClaim: { claimName: "payroll" } } } } },
    message: "spec.api.keys.sqlite.persistentVolumeClaim.claimName is payroll",
  },
  {
    what: "GPUs without a profile",
    ...model({ accelerator: { count: 64 } }),
    message: "spec.models[mist].accelerator is set, but the class allows only its profiles",
  },
  {
    what: "unknown profile",
    ...model({ acceleratorProfile: "h100" }),
    message: "spec.models[mist].acceleratorProfile is h100, but the profiles of the class are: l4, dra",
  },
  {
    what: "profile with a claim template that the tenant may change",
    ...model({ acceleratorProfile: "dra" }),
    message: "spec.models[mist].acceleratorProfile is dra, which has a claimTemplateName",
  },
  {
    what: "class of another tenant",
    spec: { className: "team-b" },
    message: "which may not use the class",
  },
  {
    what: "no class, so that the default class applies",
    spec: { className: undefined, api: { service: { type: "NodePort" } } },
    message: "TtsClass shared does not allow the spec: spec.api.service.type is NodePort",
  },
];

/** Attempts that only the operator can refuse. The message is in the condition ClassAccepted. */
export const refusedByOperator: readonly Attempt[] = [
  {
    what: "more pods than the namespace may have",
    ...model({ replicas: 9 }),
    message:
      "spec requests 10 pods, and other TtsDeployments of the namespace request 2, but the class allows 6",
  },
  {
    what: "more pods, divided between two TtsDeployments",
    ...model({ replicas: 4 }),
    message:
      "spec requests 5 pods, and other TtsDeployments of the namespace request 2, but the class allows 6",
  },
  {
    what: "more pods at the maximum of scaling",
    ...model({ replicas: undefined, scaling: { maxReplicas: 9 } }),
    message: "spec requests 10 pods, and other",
  },
  {
    what: "more API pods at the maximum of scaling",
    spec: { api: { scaling: { maxReplicas: 9 } } },
    message: "spec requests 10 pods, and other",
  },
  {
    what: "scaling by another controller, without a maximum",
    ...model({ replicas: undefined, scaling: { provider: "External" } }),
    message: "spec.models[0].replicas is not set, but the class limits the replicas of a namespace",
  },
  {
    what: "more GPUs than the namespace may have",
    ...model({ replicas: 3, acceleratorProfile: "l4" }),
    message: "spec requests 3 devices, but the class allows 2 devices in each namespace",
  },
  {
    what: "class that does not exist",
    spec: { className: "unlimited" },
    message: "spec.className is unlimited, but this TtsClass does not exist",
  },
];
