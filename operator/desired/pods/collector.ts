import { paths, ports } from "../../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";

/**
 * The configuration of the collector in a model pod, for the contrib distribution of the OpenTelemetry
 * Collector. The collector sends the OTLP data of the model and the /metrics of the pod to one backend. The
 * configuration contains no credentials: they are files and variables of the container.
 */

type Collector = NonNullable<TtsModelPoolSpec["telemetry"]>["collector"];
type Auth = NonNullable<Collector["auth"]>;
type Exporter = NonNullable<Collector["exporter"]>;
type Json = { [name: string]: unknown };

/** Variables of the collector's container that the configuration refers to. */
export const collectorEnv = {
  config: "COLLECTOR_CONFIG",
  username: "COLLECTOR_USERNAME",
  password: "COLLECTOR_PASSWORD",
  clientId: "COLLECTOR_CLIENT_ID",
  clientSecret: "COLLECTOR_CLIENT_SECRET",
  header: (index: number) => `COLLECTOR_HEADER_${index}`,
} as const;

/** The names of the files with the entries of Secrets. */
export const tokenFile = "token";
export const caFile = "ca.crt";

export interface CollectorSettings {
  readonly kind: TtsModelPoolSpec["kind"];
  /** Whether vLLM runs in the pod. */
  readonly hasVllm: boolean;
  readonly collector: Collector & { exporter: Exporter };
  readonly resourceAttributes: Readonly<Record<string, string>>;
  /** Attributes of the pod, with the variables that contain their values (`k8s.pod.name: POD_NAME`). */
  readonly attributesFrom: Readonly<Record<string, string>>;
}

export function collectorConfig(settings: CollectorSettings): Json {
  const { exporter, auth } = settings.collector;
  const known = auth && authenticator(auth);
  const sends = exporter.protocol === "grpc" ? "otlp_grpc" : "otlp_http";
  const processors = ["memory_limiter", "resource", "batch"];
  return {
    extensions: { health_check: { endpoint: `:${ports.collectorHealth}` }, ...known },
    receivers: { otlp: otlpReceiver, prometheus: prometheusReceiver(settings) },
    processors: {
      // Below the memory limit of the container, the collector rejects further data. The model continues to
      // serve.
      memory_limiter: { check_interval: "1s", limit_percentage: 75, spike_limit_percentage: 20 },
      resource: { attributes: attributesOf(settings) },
      batch: { timeout: "5s", send_batch_size: 4096, send_batch_max_size: 4096 },
    },
    exporters: { [sends]: exporterOf(exporter, auth, known && Object.keys(known)[0]) },
    service: {
      extensions: ["health_check", ...Object.keys(known ?? {})],
      telemetry: { logs: { encoding: "json" }, metrics: { level: "none" } },
      pipelines: {
        metrics: { receivers: ["otlp", "prometheus"], processors, exporters: [sends] },
        traces: { receivers: ["otlp"], processors, exporters: [sends] },
      },
    },
  };
}

/** The receiver listens only on the loopback address, so that other pods cannot send data. */
const otlpReceiver = {
  protocols: {
    grpc: { endpoint: `127.0.0.1:${ports.otlpGrpc}` },
    http: { endpoint: `127.0.0.1:${ports.otlpHttp}` },
  },
};

function prometheusReceiver({ kind, hasVllm, collector }: CollectorSettings): Json {
  const job = (name: string, port: number) => ({
    job_name: name,
    scrape_interval: `${collector.scrapeIntervalSeconds}s`,
    static_configs: [{ targets: [`127.0.0.1:${port}`] }],
  });
  const jobs = [job(`svc-tts-${kind}`, ports.model)];
  if (hasVllm) jobs.push(job("vllm", ports.vllm));
  return { config: { scrape_configs: jobs } };
}

/**
 * Returns the attributes of all data. `upsert` overrides attributes of a metric, such as the scraped address,
 * because these attributes are more precise.
 */
function attributesOf({ resourceAttributes, attributesFrom }: CollectorSettings): Json[] {
  const own = Object.entries(attributesFrom).map(([key, name]) => [key, `\${env:${name}}`]);
  const users = Object.entries(resourceAttributes).map(([key, value]) => [key, literal(value)]);
  return [...own, ...users].map(([key, value]) => ({ key, value, action: "upsert" }));
}

/** Escapes `$`, which starts a reference in the collector's configuration. */
function literal(text: string): string {
  return text.replaceAll("$", "$$$$");
}

/**
 * Returns a reference to a variable. If the variable is not set, the collector starts nevertheless, and the
 * backend rejects its requests.
 */
function variable(name: string): string {
  return `\${env:${name}:-missing}`;
}

function authenticator({ bearer, basic, oauth2 }: Auth): Json | undefined {
  if (bearer) return { bearertokenauth: { filename: `${paths.telemetryAuth}/${tokenFile}` } };
  if (basic) {
    const username = variable(collectorEnv.username);
    return {
      "basicauth/client": { client_auth: { username, password: variable(collectorEnv.password) } },
    };
  }
  if (!oauth2) return undefined;
  return {
    oauth2client: {
      client_id: variable(collectorEnv.clientId),
      client_secret: variable(collectorEnv.clientSecret),
      grant_type: "client_credentials",
      token_url: literal(oauth2.tokenUrl),
      scopes: oauth2.scopes.map(literal),
      timeout: "10s",
    },
  };
}

function exporterOf(exporter: Exporter, auth: Auth | undefined, authenticator: string | undefined): Json {
  const { endpoint, compression, caSecretRef } = exporter;
  const headers = auth?.headers?.map(({ name }, index) => [name, variable(collectorEnv.header(index))]);
  return {
    endpoint: literal(endpoint),
    compression,
    ...(caSecretRef && { tls: { ca_file: `${paths.telemetryCa}/${caFile}` } }),
    ...(authenticator && { auth: { authenticator } }),
    ...(headers && { headers: Object.fromEntries(headers) }),
  };
}
