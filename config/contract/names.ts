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

/** Of `replicas` where the operator itself scales. */
export const scalerManager = "tts-operator-scaler";

export const ports = {
  /** Public API tier. */
  api: 8000,
  /** A model container in its pod (specification 4.6). */
  model: 8080,
  /** The arcana tier where all tiers share one machine (`svc-tts all`). */
  arcanaBesideMist: 8090,
  /** Where an arcana pod relays vLLM's own /metrics (specification 4.6). */
  vllm: 8001,
  /** OTLP to the collector beside a model, on the pod's loopback. */
  otlpGrpc: 4317,
  otlpHttp: 4318,
  /** Whether that collector is well. */
  collectorHealth: 13133,
  operatorMetrics: 8443,
  operatorProbes: 8081,
} as const;

/** Below these the API answers callers from outside the cluster; probes, metrics and what the operator asks stay inside. */
export const publicPaths: readonly string[] = ["/v1", "/dashboard", "/health", "/openapi.json"];

/** Kubernetes' recommended labels, and two of ours that select the children. */
export const labels = {
  name: "app.kubernetes.io/name",
  instance: "app.kubernetes.io/instance",
  component: "app.kubernetes.io/component",
  partOf: "app.kubernetes.io/part-of",
  managedBy: "app.kubernetes.io/managed-by",
  deployment: "tts.svc.dev/deployment",
  pool: "tts.svc.dev/pool",
  /** Of a pod: the template that it was made from. */
  revision: "tts.svc.dev/revision",
} as const;

/** What people write on objects to ask for something once: any new value asks again. */
export const requests = {
  /** On a TtsDeployment or a TtsModelPool: roll its pods, also where nothing but the operator's version changed. */
  restart: "tts.svc.dev/restart",
  /** On a TtsDeployment: make a new internal token. */
  rotateToken: "tts.svc.dev/rotate-token",
  /** On a TtsModelPool, with the revision of its canary: stay at the step, take it over at once, or give it up. */
  canaryPause: "tts.svc.dev/canary-pause",
  canaryPromote: "tts.svc.dev/canary-promote",
  canaryAbort: "tts.svc.dev/canary-abort",
} as const;

/** Names of the children, all in the namespace of their `TtsDeployment`. */
export const children = {
  apiDeployment: (deployment: string) => `${deployment}-api`,
  apiService: (deployment: string) => `${deployment}-api`,
  apiServiceAccount: (deployment: string) => `${deployment}-api`,
  modelServiceAccount: (deployment: string) => `${deployment}-model`,
  /** A `TtsModelPool`, and the Deployment and Service that the pool makes. */
  pool: (deployment: string, model: string) => `${deployment}-${model}`,
  /** The pool label of the pods that try a pool's new settings. */
  canary: (pool: string) => `${pool}-canary`,
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
  valkey: "/var/run/svc-tts/valkey",
  valkeyCa: "/var/run/svc-tts/valkey-ca",
  /** The volume of the SQLite file. */
  database: "/var/lib/svc-tts/database",
  /** Words that wait until PostgreSQL has them. */
  spool: "/var/lib/svc-tts/spool",
  databasePassword: "/var/run/svc-tts/database",
  databaseCa: "/var/run/svc-tts/database-ca",
  dashboardSetup: "/var/run/svc-tts/dashboard-setup",
  oidcClientSecret: "/var/run/svc-tts/oidc",
  oidcCa: "/var/run/svc-tts/oidc-ca",
  models: "/var/lib/svc-tts/models",
  /** Credentials of the collector beside a model. */
  telemetryAuth: "/var/run/svc-tts/telemetry/auth",
  telemetryCa: "/var/run/svc-tts/telemetry/ca",
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
  /** Where the license's issuer is asked whether it is still good; nobody is asked without it. */
  licenseEndpoint: "SVC_TTS_LICENSE_ENDPOINT",
  licenseCheckSeconds: "SVC_TTS_LICENSE_CHECK_SECONDS",
  /** PEM of the authority of its certificate, where that is a private one. */
  licenseCaFile: "SVC_TTS_LICENSE_CA_FILE",
  /** A file of API key digests (`keys.yaml`). */
  keysFile: "SVC_TTS_KEYS_FILE",
  /** One more API key, in the clear, for development. */
  apiKey: "SVC_TTS_API_KEY",
  /** Folder of Hunspell dictionaries, beside those that the server has. */
  dictionaryDir: "SVC_TTS_DICTIONARY_DIR",
  /** SQLite file, or `postgres://` URL, of API keys and out-of-vocabulary words. */
  database: "SVC_TTS_DATABASE",
  /** PostgreSQL's password, beside the URL. */
  databasePasswordFile: "SVC_TTS_DATABASE_PASSWORD_FILE",
  /** Folder where words wait until the database has them. */
  spoolDir: "SVC_TTS_SPOOL_DIR",
  /** Proxies whose X-Forwarded-For is believed: addresses and networks, with commas between. */
  trustedProxies: "SVC_TTS_TRUSTED_PROXIES",
  /** Where people reach the dashboard; there is none without it. */
  dashboardUrl: "SVC_TTS_DASHBOARD_URL",
  /** What the link of the first owner shows. */
  dashboardSetupFile: "SVC_TTS_DASHBOARD_SETUP_FILE",
  /** Days that changes are kept. */
  auditDays: "SVC_TTS_AUDIT_DAYS",
  /** Sign-in to the dashboard by an OpenID Connect provider. */
  oidcIssuer: "SVC_TTS_OIDC_ISSUER",
  oidcClientId: "SVC_TTS_OIDC_CLIENT_ID",
  oidcClientSecretFile: "SVC_TTS_OIDC_CLIENT_SECRET_FILE",
  oidcCaFile: "SVC_TTS_OIDC_CA_FILE",
  oidcName: "SVC_TTS_OIDC_NAME",
  oidcScopes: "SVC_TTS_OIDC_SCOPES",
  oidcGroupsClaim: "SVC_TTS_OIDC_GROUPS_CLAIM",
  oidcGroups: "SVC_TTS_OIDC_GROUPS",
  /** How long keys of a database count that cannot be read any more. */
  keysStaleSeconds: "SVC_TTS_KEYS_STALE_SECONDS",
  /** Limits of keys that have none of their own. */
  keyRequestsPerMinute: "SVC_TTS_KEY_REQUESTS_PER_MINUTE",
  keyStreams: "SVC_TTS_KEY_STREAMS",
  /** Where API replicas share those counts. */
  valkeyUrl: "SVC_TTS_VALKEY_URL",
  valkeyPassword: "SVC_TTS_VALKEY_PASSWORD",
  valkeyPasswordFile: "SVC_TTS_VALKEY_PASSWORD_FILE",
  valkeyCaFile: "SVC_TTS_VALKEY_CA_FILE",
  valkeyPrefix: "SVC_TTS_VALKEY_PREFIX",
  /** Largest body of a request, and most audio in one JSON answer. */
  maxBodyBytes: "SVC_TTS_MAX_BODY_BYTES",
  maxJsonAudioBytes: "SVC_TTS_MAX_JSON_AUDIO_BYTES",
  /** Bodies and JSON answers that one API process holds at once. */
  maxHeldBytes: "SVC_TTS_MAX_HELD_BYTES",
  maxHeaderBytes: "SVC_TTS_MAX_HEADER_BYTES",
  /** Requests that may wait for a model that slept, and how long. */
  holdRequests: "SVC_TTS_HOLD_REQUESTS",
  holdSeconds: "SVC_TTS_HOLD_SECONDS",
  /** Longest time that a request may take to arrive. */
  requestSeconds: "SVC_TTS_REQUEST_SECONDS",
  /** Longest time that a reader may read nothing. */
  stallSeconds: "SVC_TTS_STALL_SECONDS",
  /** Highest `samplingRate` of a self-hosted arcana. */
  maxSamplingRate: "SVC_TTS_MAX_SAMPLING_RATE",
  /** Streams that one model replica speaks at once; more wait or are refused. */
  maxConcurrentStreams: "SVC_TTS_MAX_CONCURRENT_STREAMS",
  /** Longest time that a running stream may take to finish after SIGTERM. */
  drainSeconds: "SVC_TTS_DRAIN_SECONDS",
  /** What writes arcana's speech: `mini`, `flite` or `vllm`. */
  arcanaGenerator: "SVC_TTS_ARCANA_GENERATOR",
  /** Folder of neural voices that an administrator mounts; read again when it changes. */
  voicesDir: "SVC_TTS_VOICES_DIR",
  /** Where they run: `cpu`, or `cuda,cpu`. */
  voicesProviders: "SVC_TTS_VOICES_PROVIDERS",
  /** Engine processes of each mounted model. */
  voicesProcesses: "SVC_TTS_VOICES_PROCESSES",
  /** Folder of the models that `svc-tts models` installs. */
  modelsDir: "SVC_TTS_MODELS_DIR",
  logLevel: "SVC_TTS_LOG_LEVEL",
} as const;

/** Variables that the specification gives the arcana container (4.6). */
export const arcanaEnv = {
  vllmPort: "GENERATOR_VLLM_PORT",
} as const;

/** Those by which it sends its metrics (6.4), and one of OpenTelemetry's own. */
export const telemetryEnv = {
  protocol: "OTEL_COLLECTOR_PROTOCOL",
  endpoint: "OTEL_COLLECTOR_ENDPOINT",
  /** Between two sends, in milliseconds. */
  intervalMs: "OTEL_METRIC_EXPORT_INTERVAL",
} as const;

/** Of a model that vLLM serves; read where `SVC_TTS_ARCANA_GENERATOR` is `vllm`. */
export const generatorEnv = {
  vllmPort: arcanaEnv.vllmPort,
  /** Folder of the model that vLLM serves, with its manifest. */
  modelDir: "GENERATOR_MODEL_DIR",
  /** A vLLM that runs elsewhere, and its key. */
  generatorUrl: "GENERATOR_URL",
  generatorApiKey: "GENERATOR_API_KEY",
  /** Otherwise one is run here: the program, arguments after those of the manifest, and how long its start may take. */
  vllmProgram: "GENERATOR_VLLM_PROGRAM",
  vllmArgs: "GENERATOR_VLLM_ARGS",
  startSeconds: "GENERATOR_START_SECONDS",
  /** How long it may write nothing when it is asked to. */
  hangSeconds: "GENERATOR_HANG_SECONDS",
  /** Streams at once, instead of what is measured. */
  capacity: "GENERATOR_CAPACITY",
  seed: "GENERATOR_SEED",
  codecProviders: "GENERATOR_CODEC_PROVIDERS",
  codecProcesses: "GENERATOR_CODEC_PROCESSES",
} as const;

/** OpenTelemetry's own variables, as far as the server reads them; its exporter reads a few more (headers, certificates, compression). */
export const otelEnv = {
  sdkDisabled: "OTEL_SDK_DISABLED",
  serviceName: "OTEL_SERVICE_NAME",
  resourceAttributes: "OTEL_RESOURCE_ATTRIBUTES",
  tracesExporter: "OTEL_TRACES_EXPORTER",
  tracesSampler: "OTEL_TRACES_SAMPLER",
  tracesSamplerArg: "OTEL_TRACES_SAMPLER_ARG",
  endpoint: "OTEL_EXPORTER_OTLP_ENDPOINT",
  tracesEndpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  protocol: "OTEL_EXPORTER_OTLP_PROTOCOL",
  tracesProtocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
} as const;
