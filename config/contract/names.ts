/**
 * Every name that operator and server must both use: the API group, labels, ports, the children of a
 * `TtsDeployment`, and the files and environment variables of its pods.
 */

export const api = {
  group: "tts.svc.dev",
  version: "v1alpha1",
  apiVersion: "tts.svc.dev/v1alpha1",
} as const;

/** Field manager of the fields that the operator applies (server-side apply). */
export const fieldManager = "tts-operator";

/**
 * Field manager that owns a field temporarily, so that the field keeps its value while the ownership moves
 * from the operator to another controller.
 */
export const handoverManager = "tts-operator-handover";

/** Field manager of `replicas` with the scaling provider Builtin. */
export const scalerManager = "tts-operator-scaler";

export const ports = {
  /** Port of the public API tier. */
  api: 8000,
  /** Port of its TLS listener. */
  apiTls: 8443,
  /** Port of a model container in its pod (specification 4.6). */
  model: 8080,
  /** Port of the arcana tier if all tiers run on one machine (`svc-tts all`). */
  arcanaBesideMist: 8090,
  /** Port at which an arcana pod relays vLLM's own /metrics (specification 4.6). */
  vllm: 8001,
  /** OTLP port of the collector sidecar, on the pod's loopback address. */
  otlpGrpc: 4317,
  otlpHttp: 4318,
  /** Port of the collector's health check. */
  collectorHealth: 13133,
  operatorMetrics: 8443,
  operatorProbes: 8081,
} as const;

/**
 * Path prefixes that clients outside the cluster may call. The paths of probes, metrics and the operator's
 * requests are not among them.
 */
export const publicPaths: readonly string[] = ["/v1", "/dashboard", "/health", "/openapi.json"];

/** Kubernetes' recommended labels, and two labels of the project that select the children. */
export const labels = {
  name: "app.kubernetes.io/name",
  instance: "app.kubernetes.io/instance",
  component: "app.kubernetes.io/component",
  partOf: "app.kubernetes.io/part-of",
  managedBy: "app.kubernetes.io/managed-by",
  deployment: "tts.svc.dev/deployment",
  pool: "tts.svc.dev/pool",
  /** Label of the claim, the Jobs and the pods of a TtsModelCache, with the name of the cache. */
  modelCache: "tts.svc.dev/model-cache",
  /** Label of a pod: the revision of the pod template that it was created from. */
  revision: "tts.svc.dev/revision",
} as const;

/** Annotations by which users request a single action. Any new value requests it again. */
export const requests = {
  /**
   * On a TtsDeployment or a TtsModelPool: replace the pods, with the pod template of the operator's current
   * version.
   */
  restart: "tts.svc.dev/restart",
  /** On a TtsDeployment: rotate the internal token. */
  rotateToken: "tts.svc.dev/rotate-token",
  /**
   * On a TtsModelPool, with the revision of its canary as value: pause at the current step, promote now, or
   * roll back.
   */
  canaryPause: "tts.svc.dev/canary-pause",
  canaryPromote: "tts.svc.dev/canary-promote",
  canaryAbort: "tts.svc.dev/canary-abort",
} as const;

/** The annotation of the TtsClass that applies to TtsDeployments without `spec.className`. Its value is `"true"`. */
export const defaultClassAnnotation = "ttsclass.tts.svc.dev/is-default-class";

/** The finalizer of a TtsModelCache that a pool names. */
export const modelCacheFinalizer = "tts.svc.dev/model-cache-in-use";

/** Names of the children, which are all in the namespace of their `TtsDeployment`. */
export const children = {
  apiDeployment: (deployment: string) => `${deployment}-api`,
  apiService: (deployment: string) => `${deployment}-api`,
  apiServiceAccount: (deployment: string) => `${deployment}-api`,
  modelServiceAccount: (deployment: string) => `${deployment}-model`,
  /** Name of a `TtsModelPool`, and of the Deployment and the Service of the pool. */
  pool: (deployment: string, model: string) => `${deployment}-${model}`,
  /** Value of the label `pool` on the pods of a pool's canary. */
  canary: (pool: string) => `${pool}-canary`,
  /**
   * ConfigMap. Its key `routing.json` contains a `RoutingTable`, and its key `jwks.json` the trusted license
   * keys.
   */
  routing: (deployment: string) => `${deployment}-routing`,
  /**
   * Secret. Its key `token` is the token that API pods send, and its key `accepted` lists the tokens that
   * model tiers accept, one per line.
   */
  token: (deployment: string) => `${deployment}-token`,
  /** The claim of a TtsModelCache, in the namespace of the cache. */
  cacheClaim: (cache: string) => `${cache}-models`,
  /** The NetworkPolicy of the pods that fetch the files of a TtsModelCache. */
  cacheNetworkPolicy: (cache: string) => `${cache}-fetch`,
  /** A Job of a TtsModelCache. Each attempt of each generation has its own Job. */
  cacheJob: (cache: string, generation: number, attempt: number) => `${cache}-fetch-${generation}-${attempt}`,
} as const;

export const routingKey = "routing.json";
export const jwksKey = "jwks.json";
export const tokenKey = "token";
/** The default key of a Secret with a license. */
export const licenseKey = "license.jwt";
export const acceptedTokensKey = "accepted";
/** The key of a Secret with API keys. The value is YAML or JSON, see `KeyFile` in server/store. */
export const keysKey = "keys.yaml";

/** Paths of the mounted volumes. */
export const paths = {
  token: "/var/run/svc-tts/token",
  /** Folder with the files `tls.crt` and `tls.key` of the API tier. */
  tls: "/var/run/svc-tts/tls",
  license: "/var/run/svc-tts/license",
  licenseKeys: "/etc/svc-tts/license-keys",
  keys: "/var/run/svc-tts/keys",
  valkey: "/var/run/svc-tts/valkey",
  valkeyCa: "/var/run/svc-tts/valkey-ca",
  /** Folder of the SQLite file. */
  database: "/var/lib/svc-tts/database",
  /** Folder of out-of-vocabulary words that are not yet written to PostgreSQL. */
  spool: "/var/lib/svc-tts/spool",
  databasePassword: "/var/run/svc-tts/database",
  databaseCa: "/var/run/svc-tts/database-ca",
  dashboardSetup: "/var/run/svc-tts/dashboard-setup",
  oidcClientSecret: "/var/run/svc-tts/oidc",
  oidcCa: "/var/run/svc-tts/oidc-ca",
  models: "/var/lib/svc-tts/models",
  /** Folder of the certificate authorities of downloads. */
  downloadsCa: "/etc/svc-tts/downloads-ca",
  /** Folder of the collector's credentials. */
  telemetryAuth: "/var/run/svc-tts/telemetry/auth",
  telemetryCa: "/var/run/svc-tts/telemetry/ca",
} as const;

/**
 * Environment variables of the server's containers. Only `main.ts` reads them. Durations are in seconds
 * unless the name has another unit.
 */
export const env = {
  port: "SVC_TTS_PORT",
  host: "SVC_TTS_HOST",
  /**
   * PEM files of the TLS listener's certificate and key. Without these files, the listener is disabled. The
   * server reloads changed files.
   */
  tlsCert: "SVC_TTS_TLS_CERT",
  tlsKey: "SVC_TTS_TLS_KEY",
  tlsPort: "SVC_TTS_TLS_PORT",
  /** File with the routing table, outside Kubernetes. */
  routingFile: "SVC_TTS_ROUTING_FILE",
  /** Name of the routing ConfigMap, which is watched through the API server inside Kubernetes. */
  routingConfigMap: "SVC_TTS_ROUTING_CONFIGMAP",
  namespace: "POD_NAMESPACE",
  podName: "POD_NAME",
  /** Folder with the files `token` and `accepted`. The server reloads changed files. */
  tokenDir: "SVC_TTS_TOKEN_DIR",
  licenseFile: "SVC_TTS_LICENSE_FILE",
  licenseKeysFile: "SVC_TTS_LICENSE_KEYS_FILE",
  /** The deployment's `gracePeriod` in seconds. */
  licenseGraceSeconds: "SVC_TTS_LICENSE_GRACE_SECONDS",
  /** URL of the issuer's online check. Without it there is no online check. */
  licenseEndpoint: "SVC_TTS_LICENSE_ENDPOINT",
  licenseCheckSeconds: "SVC_TTS_LICENSE_CHECK_SECONDS",
  /** PEM certificate of a private authority that signed the issuer's certificate. */
  licenseCaFile: "SVC_TTS_LICENSE_CA_FILE",
  /** File of API key digests (`keys.yaml`). */
  keysFile: "SVC_TTS_KEYS_FILE",
  /** An additional API key in clear text, for development. */
  apiKey: "SVC_TTS_API_KEY",
  /** Folder of Hunspell dictionaries, in addition to the dictionaries of the server. */
  dictionaryDir: "SVC_TTS_DICTIONARY_DIR",
  /** SQLite file or `postgres://` URL of the database. */
  database: "SVC_TTS_DATABASE",
  /** File with the password of PostgreSQL. The URL contains no password. */
  databasePasswordFile: "SVC_TTS_DATABASE_PASSWORD_FILE",
  /** Folder where out-of-vocabulary words wait while the database is unavailable. */
  spoolDir: "SVC_TTS_SPOOL_DIR",
  /** Comma-separated addresses and networks of proxies whose X-Forwarded-For is trusted. */
  trustedProxies: "SVC_TTS_TRUSTED_PROXIES",
  /** URL of the dashboard. Without it the dashboard is disabled. */
  dashboardUrl: "SVC_TTS_DASHBOARD_URL",
  /** File with the token of the link that registers the first owner. */
  dashboardSetupFile: "SVC_TTS_DASHBOARD_SETUP_FILE",
  /** Days for which the audit log is kept. */
  auditDays: "SVC_TTS_AUDIT_DAYS",
  /** Single sign-on to the dashboard with an OpenID Connect provider. */
  oidcIssuer: "SVC_TTS_OIDC_ISSUER",
  oidcClientId: "SVC_TTS_OIDC_CLIENT_ID",
  oidcClientSecretFile: "SVC_TTS_OIDC_CLIENT_SECRET_FILE",
  oidcCaFile: "SVC_TTS_OIDC_CA_FILE",
  oidcName: "SVC_TTS_OIDC_NAME",
  oidcScopes: "SVC_TTS_OIDC_SCOPES",
  oidcGroupsClaim: "SVC_TTS_OIDC_GROUPS_CLAIM",
  oidcGroups: "SVC_TTS_OIDC_GROUPS",
  /** The time for which the API keys of a database stay valid while the database is unavailable. */
  keysStaleSeconds: "SVC_TTS_KEYS_STALE_SECONDS",
  /** Default limits of API keys. They apply to keys without limits of their own. */
  keyRequestsPerMinute: "SVC_TTS_KEY_REQUESTS_PER_MINUTE",
  keyStreams: "SVC_TTS_KEY_STREAMS",
  /** URL of Valkey or Redis, in which API replicas share the counts for these limits. */
  valkeyUrl: "SVC_TTS_VALKEY_URL",
  valkeyPassword: "SVC_TTS_VALKEY_PASSWORD",
  valkeyPasswordFile: "SVC_TTS_VALKEY_PASSWORD_FILE",
  valkeyCaFile: "SVC_TTS_VALKEY_CA_FILE",
  valkeyPrefix: "SVC_TTS_VALKEY_PREFIX",
  /** Largest body of a request, and longest audio of one JSON response. */
  maxBodyBytes: "SVC_TTS_MAX_BODY_BYTES",
  maxJsonAudioBytes: "SVC_TTS_MAX_JSON_AUDIO_BYTES",
  /** Bytes of request bodies and JSON responses that one API process holds in memory at once. */
  maxHeldBytes: "SVC_TTS_MAX_HELD_BYTES",
  maxHeaderBytes: "SVC_TTS_MAX_HEADER_BYTES",
  /** Number of requests that may wait for a pool that is scaled to zero, and the longest wait. */
  holdRequests: "SVC_TTS_HOLD_REQUESTS",
  holdSeconds: "SVC_TTS_HOLD_SECONDS",
  /** Longest time in which a request must arrive completely. */
  requestSeconds: "SVC_TTS_REQUEST_SECONDS",
  /** Longest time for which a client may read no part of a response. */
  stallSeconds: "SVC_TTS_STALL_SECONDS",
  /** Highest `samplingRate` of a self-hosted arcana. */
  maxSamplingRate: "SVC_TTS_MAX_SAMPLING_RATE",
  /**
   * The highest number of WebSockets that a key may have open at one API pod, and that the key may open at
   * this pod in a second.
   */
  keySockets: "SVC_TTS_KEY_SOCKETS",
  keySocketsPerSecond: "SVC_TTS_KEY_SOCKETS_PER_SECOND",
  /** JSON objects that map the names in messages of WebSocket clients to models and voices. */
  modelAliases: "SVC_TTS_MODEL_ALIASES",
  voiceAliases: "SVC_TTS_VOICE_ALIASES",
  /**
   * The effect of the WebSocket message `clear`: `abort` discards buffered text and stops the running speech,
   * `buffer` only discards buffered text.
   */
  socketClearMode: "SVC_TTS_SOCKET_CLEAR_MODE",
  /** Highest number of concurrent streams of one model replica. Further requests wait or are rejected. */
  maxConcurrentStreams: "SVC_TTS_MAX_CONCURRENT_STREAMS",
  /** Longest time for running streams to finish after SIGTERM. */
  drainSeconds: "SVC_TTS_DRAIN_SECONDS",
  /** The generator of arcana: `mini`, `flite`, `vllm` or `kokoro`. */
  arcanaGenerator: "SVC_TTS_ARCANA_GENERATOR",
  /** Folder of mounted neural voices. The server reloads changed voices. */
  voicesDir: "SVC_TTS_VOICES_DIR",
  /** Execution providers of ONNX Runtime: `cpu`, or `cuda,cpu`. */
  voicesProviders: "SVC_TTS_VOICES_PROVIDERS",
  /** Engine processes for each mounted model. */
  voicesProcesses: "SVC_TTS_VOICES_PROCESSES",
  /** Highest number of concurrent streams of one mounted model. It overrides the measured number. */
  voicesStreams: "SVC_TTS_VOICES_STREAMS",
  /** The voices that serve requests when a mounted model is at its capacity: `none` or `builtin`. */
  voicesFallback: "SVC_TTS_VOICES_FALLBACK",
  /**
   * The engine of mist's built-in English voices: Flite (`latency`), or Kokoro if it is installed
   * (`quality`).
   */
  prefer: "SVC_TTS_PREFER",
  /** Folder of the models that `svc-tts models` installs. */
  modelsDir: "SVC_TTS_MODELS_DIR",
  logLevel: "SVC_TTS_LOG_LEVEL",
} as const;

/** Variables that the specification requires of the arcana container (4.6). */
export const arcanaEnv = {
  vllmPort: "GENERATOR_VLLM_PORT",
} as const;

/** Variables of arcana's metrics export (specification 6.4), and a variable of OpenTelemetry. */
export const telemetryEnv = {
  protocol: "OTEL_COLLECTOR_PROTOCOL",
  endpoint: "OTEL_COLLECTOR_ENDPOINT",
  /** Milliseconds between two exports. */
  intervalMs: "OTEL_METRIC_EXPORT_INTERVAL",
} as const;

/** Variables for a model that vLLM serves. They apply if `SVC_TTS_ARCANA_GENERATOR` is `vllm`. */
export const generatorEnv = {
  vllmPort: arcanaEnv.vllmPort,
  /** Folder of the model that vLLM serves, with its manifest. */
  modelDir: "GENERATOR_MODEL_DIR",
  /** URL and API key of a vLLM that runs elsewhere. */
  generatorUrl: "GENERATOR_URL",
  generatorApiKey: "GENERATOR_API_KEY",
  /**
   * Program of vLLM, its arguments in addition to the arguments of the manifest, and the longest time of its
   * start. They apply only if GENERATOR_URL is not set, because the server then starts vLLM.
   */
  vllmProgram: "GENERATOR_VLLM_PROGRAM",
  vllmArgs: "GENERATOR_VLLM_ARGS",
  startSeconds: "GENERATOR_START_SECONDS",
  /** Longest time without output during a request. */
  hangSeconds: "GENERATOR_HANG_SECONDS",
  /** Number of concurrent streams. It overrides the measured number. */
  capacity: "GENERATOR_CAPACITY",
  seed: "GENERATOR_SEED",
  codecProviders: "GENERATOR_CODEC_PROVIDERS",
  codecProcesses: "GENERATOR_CODEC_PROCESSES",
} as const;

/**
 * OpenTelemetry's own variables that the server reads. The exporter reads further variables (headers,
 * certificates, compression).
 */
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
