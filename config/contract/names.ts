/**
 * Every name that more than one part of the house must spell the same way: the API group, labels, ports,
 * the children of a `TtsDeployment`, and the files and environment variables of its pods.
 */

export const api = {
  group: "tts.svc.dev",
  version: "v1alpha1",
  apiVersion: "tts.svc.dev/v1alpha1",
} as const;

/** Field manager of everything the operator applies (server-side apply). */
export const fieldManager = "tts-operator";

/** Keeps a field's value while its ownership passes from the operator to somebody else. */
export const handoverManager = "tts-operator-handover";

export const ports = {
  /** Public API tier. */
  api: 8000,
  /** A model container in its pod (specification 4.6). */
  model: 8080,
  /** The arcana tier where all tiers share one machine (`svc-tts all`). */
  arcanaBesideMist: 8090,
  operatorMetrics: 8443,
  operatorProbes: 8081,
} as const;

/** Kubernetes' recommended labels, and two of ours that select the children. */
export const labels = {
  name: "app.kubernetes.io/name",
  instance: "app.kubernetes.io/instance",
  component: "app.kubernetes.io/component",
  partOf: "app.kubernetes.io/part-of",
  managedBy: "app.kubernetes.io/managed-by",
  deployment: "tts.svc.dev/deployment",
  pool: "tts.svc.dev/pool",
} as const;

/** Names of the children, all in the namespace of their `TtsDeployment`. */
export const children = {
  apiDeployment: (deployment: string) => `${deployment}-api`,
  apiService: (deployment: string) => `${deployment}-api`,
  apiServiceAccount: (deployment: string) => `${deployment}-api`,
  modelServiceAccount: (deployment: string) => `${deployment}-model`,
  /** A `TtsModelPool`, and the Deployment and Service that the pool makes. */
  pool: (deployment: string, model: string) => `${deployment}-${model}`,
  /** ConfigMap; key `routing.json` holds a `RoutingTable`, key `jwks.json` the trusted license keys. */
  routing: (deployment: string) => `${deployment}-routing`,
  /** Secret; key `token` is what clients send, key `accepted` (one a line) what model tiers take. */
  token: (deployment: string) => `${deployment}-token`,
} as const;

export const routingKey = "routing.json";
export const jwksKey = "jwks.json";
export const tokenKey = "token";
export const acceptedTokensKey = "accepted";
/** The entry of a keys Secret: YAML or JSON, see `KeyFile` in server/store. */
export const keysKey = "keys.yaml";

/** Where pods find mounted things. */
export const paths = {
  token: "/var/run/svc-tts/token",
  license: "/var/run/svc-tts/license",
  licenseKeys: "/etc/svc-tts/license-keys",
  keys: "/var/run/svc-tts/keys",
} as const;

/** Environment of the server's containers; read by `main.ts` alone. Durations are seconds unless named otherwise. */
export const env = {
  port: "SVC_TTS_PORT",
  host: "SVC_TTS_HOST",
  /** A routing table file; outside Kubernetes. */
  routingFile: "SVC_TTS_ROUTING_FILE",
  /** Name of the routing ConfigMap; inside Kubernetes, watched through the API server. */
  routingConfigMap: "SVC_TTS_ROUTING_CONFIGMAP",
  namespace: "POD_NAMESPACE",
  podName: "POD_NAME",
  /** Folder with files `token` and `accepted`; read again when they change. */
  tokenDir: "SVC_TTS_TOKEN_DIR",
  licenseFile: "SVC_TTS_LICENSE_FILE",
  licenseKeysFile: "SVC_TTS_LICENSE_KEYS_FILE",
  /** The deployment's `gracePeriod`, in seconds. */
  licenseGraceSeconds: "SVC_TTS_LICENSE_GRACE_SECONDS",
  /** A file of API key digests (`keys.yaml`). */
  keysFile: "SVC_TTS_KEYS_FILE",
  /** One more API key, in the clear, for development. */
  apiKey: "SVC_TTS_API_KEY",
  /** Streams that one model replica speaks at once; more wait or are refused. */
  maxConcurrentStreams: "SVC_TTS_MAX_CONCURRENT_STREAMS",
  /** Longest time that a running stream may take to finish after SIGTERM. */
  drainSeconds: "SVC_TTS_DRAIN_SECONDS",
  logLevel: "SVC_TTS_LOG_LEVEL",
} as const;
