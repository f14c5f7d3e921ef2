import { Type } from "typebox";
import { Image, Key, ObjectName, qualifiedNames, Resources } from "./fields.ts";
import { atomicList, mapList, rules } from "./keywords.ts";

/**
 * The schema of `telemetry`: metrics and traces that OpenTelemetry pushes (specification 6.3, 6.4), and
 * metrics that Prometheus reads.
 */

const secretName = { name: ObjectName("Name of the Secret.") };

const Endpoint = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 1024,
    description,
    ...rules({
      rule: "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",
      message: "must be a URL, for example https://otlp.example.com:4317",
    }),
  });

const protocols = ["grpc", "http/protobuf", "http/json"] as const;

const Exporter = Type.Object(
  {
    protocol: Type.Enum(["grpc", "http/protobuf"], {
      default: "grpc",
      description:
        "Protocol of the collector's export: OTLP over gRPC (`grpc`) or over HTTP (`http/protobuf`).",
    }),
    endpoint: Endpoint(
      "Endpoint of the backend: with gRPC for example `https://host:4317`, with HTTP the URL without the final `/v1/metrics`.",
    ),
    compression: Type.Enum(["gzip", "none"], {
      default: "gzip",
      description: "Compression of the exported data.",
    }),
    caSecretRef: Type.Optional(
      Type.Object(
        { ...secretName, key: Key("Key in the Secret.", "ca.crt") },
        {
          description:
            "PEM certificates of the authority that signed the backend's certificate. If it is absent, the system's authorities are trusted.",
        },
      ),
    ),
  },
  { description: "The backend to which the collector exports." },
);

const Headers = Type.Array(
  Type.Object({
    name: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
      description: "Name of the header, for example `api-key`.",
    }),
    secretRef: Type.Object(
      { ...secretName, key: Key("Key in the Secret.") },
      { description: "The Secret entry that contains the header's value." },
    ),
  }),
  {
    minItems: 1,
    maxItems: 8,
    ...mapList("name"),
    description: "Custom headers. The pod reads their values when it starts.",
  },
);

const Auth = Type.Object(
  {
    bearer: Type.Optional(
      Type.Object(
        {
          secretRef: Type.Object(
            { ...secretName, key: Key("Key in the Secret.", "token") },
            { description: "The Secret entry that contains the token." },
          ),
        },
        { description: "`Authorization: Bearer` with a token, which the collector reads when it starts." },
      ),
    ),
    basic: Type.Optional(
      Type.Object(
        {
          secretRef: Type.Object(secretName, {
            description: "Secret of type kubernetes.io/basic-auth, with the keys `username` and `password`.",
          }),
        },
        { description: "`Authorization: Basic` with a user name and a password." },
      ),
    ),
    oauth2: Type.Optional(
      Type.Object(
        {
          tokenUrl: Endpoint("Token endpoint of the authorization server."),
          scopes: Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: "^[!#-\\[\\]-~]+$" }), {
            maxItems: 16,
            default: [],
            ...atomicList,
            description: "Scopes of the requested tokens.",
          }),
          secretRef: Type.Object(secretName, {
            description: "Secret with the keys `clientId` and `clientSecret`.",
          }),
        },
        { description: "OAuth 2.0 client credentials (RFC 6749, section 4.4)." },
      ),
    ),
    headers: Type.Optional(Headers),
  },
  {
    description: "How the collector authenticates with the backend. The model container has no credentials.",
    ...rules({
      rule: "[has(self.bearer), has(self.basic), has(self.oauth2), has(self.headers)].filter(x, x).size() <= 1",
      message: "telemetry.collector.auth must have at most one of bearer, basic, oauth2 and headers",
    }),
  },
);

const Collector = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description:
        "Run an OpenTelemetry Collector as a sidecar of each model container. The collector receives the model's metrics and traces, reads /metrics of the model and of vLLM, and exports all of these data. During a drain it stops after the model.",
    }),
    image: Type.Optional(
      Image(
        "Image of the collector, with the components of the contrib distribution. If it is absent, the operator's default image is used.",
      ),
    ),
    resources: Resources(
      "Resources of the collector. The collector keeps its memory use below the memory limit.",
      { cpu: "50m", memory: "96Mi" },
      { memory: "256Mi" },
    ),
    scrapeIntervalSeconds: Type.Integer({
      minimum: 5,
      maximum: 3600,
      default: 30,
      description: "Seconds between two reads of /metrics, and between two exports of arcana's own metrics.",
    }),
    exporter: Type.Optional(Exporter),
    auth: Type.Optional(Auth),
  },
  {
    // The default is written out in full, because the API server validates a default against the rules below
    // before it fills in nested defaults.
    default: { enabled: false },
    description: "The collector sidecar.",
    ...rules(
      {
        rule: "!self.enabled || has(self.exporter)",
        message:
          "telemetry.collector.exporter is required with telemetry.collector.enabled: set the endpoint of the backend",
        fieldPath: ".exporter",
      },
      {
        rule: "!has(self.auth) || !has(self.exporter) || has(self.auth.headers) || self.exporter.protocol != 'grpc' || self.exporter.endpoint.startsWith('https://')",
        message:
          "telemetry.collector.auth with gRPC needs an https:// endpoint: credentials must not be sent in clear text",
        fieldPath: ".auth",
      },
    ),
  },
);

/** The part of `telemetry` that changes the pod template. */
const podTelemetry = {
  protocol: Type.Enum([...protocols], {
    default: "grpc",
    description: "Protocol with which arcana pushes metrics to a collector.",
  }),
  endpoint: Type.Optional(
    Endpoint(
      "Collector to which arcana sends metrics without authentication, for example `http://collector.monitoring:4317`. Leave it out with `collector.enabled`, because arcana then sends metrics to the sidecar.",
    ),
  ),
  resourceAttributes: Type.Record(Type.String(), Type.String({ maxLength: 1024 }), {
    maxProperties: 32,
    default: {},
    description:
      "Attributes of all exported data, for example `deployment.environment.name: production`. Namespace, pod and pool are always added.",
    ...rules({
      rule: "self.all(k, k.matches('^[A-Za-z][-A-Za-z0-9_./]{0,127}$'))",
      message:
        "the keys of telemetry.resourceAttributes must be names of attributes, for example deployment.environment.name",
    }),
  }),
  collector: Collector,
};

const singleDestination = rules({
  rule: "!(has(self.endpoint) && self.collector.enabled)",
  message:
    "telemetry.endpoint and telemetry.collector.enabled exclude each other: with the collector sidecar, set the backend in telemetry.collector.exporter.endpoint",
  fieldPath: ".endpoint",
});

const description = "How metrics and traces are exported from the pods.";

/** The telemetry settings of one pool. */
export const PodTelemetry = Type.Object(podTelemetry, { description, ...singleDestination });

const ServiceMonitor = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description:
        "Create a ServiceMonitor for the API tier and the models, and a PodMonitor for vLLM. If the CRDs of the Prometheus operator are not installed yet, the operator creates the monitors after their installation.",
    }),
    intervalSeconds: Type.Integer({
      minimum: 5,
      maximum: 3600,
      default: 30,
      description: "Seconds between two reads of /metrics by Prometheus.",
    }),
    labels: Type.Record(
      Type.String(),
      Type.String({ maxLength: 63, pattern: "^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$" }),
      {
        maxProperties: 16,
        default: {},
        description:
          "Labels of the monitors, by which Prometheus selects them, for example `release: prometheus`.",
        ...qualifiedNames("telemetry.serviceMonitor.labels", "labels"),
      },
    ),
  },
  { default: {}, description: "Monitors for the Prometheus operator." },
);

export const TelemetrySchema = Type.Object(
  { ...podTelemetry, serviceMonitor: ServiceMonitor },
  { description, ...singleDestination },
);
