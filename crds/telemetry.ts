import { Type } from "typebox";
import { Image, Key, ObjectName, qualifiedNames, Resources } from "./fields.ts";
import { atomicList, mapList, rules } from "./keywords.ts";

/** How metrics leave: pushed by OpenTelemetry (specification 6.3, 6.4), or read by Prometheus. */

const secretName = { name: ObjectName("Name of the Secret.") };

const Endpoint = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 1024,
    description,
    ...rules({
      rule: "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",
      message: "must be a URL, as https://otlp.example.com:4317",
    }),
  });

const protocols = ["grpc", "http/protobuf", "http/json"] as const;

const Exporter = Type.Object(
  {
    protocol: Type.Enum(["grpc", "http/protobuf"], {
      default: "grpc",
      description: "How the collector sends on: OTLP over gRPC, or over HTTP.",
    }),
    endpoint: Endpoint(
      "Where the collector sends to: `https://host:4317` by gRPC; by HTTP the URL before `/v1/metrics`.",
    ),
    compression: Type.Enum(["gzip", "none"], { default: "gzip", description: "How what is sent is packed." }),
    caSecretRef: Type.Optional(
      Type.Object(
        { ...secretName, key: Key("Key in the Secret.", "ca.crt") },
        {
          description:
            "Certificates of the authority that signed the backend's, PEM; absent: the system's own.",
        },
      ),
    ),
  },
  { description: "Where the collector sends to." },
);

const Headers = Type.Array(
  Type.Object({
    name: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
      description: "Name of the header, as `api-key`.",
    }),
    secretRef: Type.Object(
      { ...secretName, key: Key("Key in the Secret.") },
      { description: "Where its value is." },
    ),
  }),
  {
    minItems: 1,
    maxItems: 8,
    ...mapList("name"),
    description: "Headers of their own; read once, when the pod starts.",
  },
);

const Auth = Type.Object(
  {
    bearer: Type.Optional(
      Type.Object(
        {
          secretRef: Type.Object(
            { ...secretName, key: Key("Key in the Secret.", "token") },
            { description: "Where the token is." },
          ),
        },
        { description: "`Authorization: Bearer`, read when the collector starts." },
      ),
    ),
    basic: Type.Optional(
      Type.Object(
        {
          secretRef: Type.Object(secretName, {
            description: "A Secret of type kubernetes.io/basic-auth: keys `username` and `password`.",
          }),
        },
        { description: "`Authorization: Basic`." },
      ),
    ),
    oauth2: Type.Optional(
      Type.Object(
        {
          tokenUrl: Endpoint("Where tokens are asked for."),
          scopes: Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: "^[!#-\\[\\]-~]+$" }), {
            maxItems: 16,
            default: [],
            ...atomicList,
            description: "Scopes of the tokens.",
          }),
          secretRef: Type.Object(secretName, {
            description: "A Secret with the keys `clientId` and `clientSecret`.",
          }),
        },
        { description: "OAuth 2 client credentials (RFC 6749, 4.4)." },
      ),
    ),
    headers: Type.Optional(Headers),
  },
  {
    description: "How the collector makes itself known to the backend; the model itself does not.",
    ...rules({
      rule: "[has(self.bearer), has(self.basic), has(self.oauth2), has(self.headers)].filter(x, x).size() <= 1",
      message: "telemetry.collector.auth takes one of bearer, basic, oauth2 and headers",
    }),
  },
);

const Collector = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description:
        "Run an OpenTelemetry Collector beside each model: it takes the model's metrics and traces, reads /metrics of the model and of vLLM, and sends them on. It outlives the model in a drain.",
    }),
    image: Type.Optional(
      Image(
        "Image of the collector, with the components of its contrib distribution; the operator's own choice when absent.",
      ),
    ),
    resources: Resources(
      "Resources of the collector. Its memory limit is what it keeps itself within.",
      { cpu: "50m", memory: "96Mi" },
      { memory: "256Mi" },
    ),
    scrapeIntervalSeconds: Type.Integer({
      minimum: 5,
      maximum: 3600,
      default: 30,
      description: "How often /metrics is read, and arcana sends its own metrics.",
    }),
    exporter: Type.Optional(Exporter),
    auth: Type.Optional(Auth),
  },
  {
    // written out: the API server holds a default to the rules below before it fills in the defaults inside
    default: { enabled: false },
    description: "The collector sidecar.",
    ...rules(
      {
        rule: "!self.enabled || has(self.exporter)",
        message: "telemetry.collector.exporter must say where the collector sends to",
        fieldPath: ".exporter",
      },
      {
        rule: "!has(self.auth) || !has(self.exporter) || has(self.auth.headers) || self.exporter.protocol != 'grpc' || self.exporter.endpoint.startsWith('https://')",
        message:
          "telemetry.collector.auth needs an https:// endpoint by gRPC, which sends no credentials in the clear",
        fieldPath: ".auth",
      },
    ),
  },
);

/** What pods are made from. */
const podTelemetry = {
  protocol: Type.Enum([...protocols], {
    default: "grpc",
    description: "How arcana sends its metrics to a collector.",
  }),
  endpoint: Type.Optional(
    Endpoint(
      "A collector that arcana sends to, as `http://collector.monitoring:4317`, without authentication. Leave it out with `collector.enabled`: then it is the one beside it.",
    ),
  ),
  resourceAttributes: Type.Record(Type.String(), Type.String({ maxLength: 1024 }), {
    maxProperties: 32,
    default: {},
    description:
      "Said of everything that is sent, as `deployment.environment.name: production`. Namespace, pod and the pool's name are said anyway.",
    ...rules({
      rule: "self.all(k, k.matches('^[A-Za-z][-A-Za-z0-9_./]{0,127}$'))",
      message:
        "the keys of telemetry.resourceAttributes must be names of attributes, as deployment.environment.name",
    }),
  }),
  collector: Collector,
};

const oneWay = rules({
  rule: "!(has(self.endpoint) && self.collector.enabled)",
  message:
    "telemetry.endpoint and telemetry.collector.enabled exclude each other: with a collector of its own, name the backend in telemetry.collector.exporter.endpoint",
  fieldPath: ".endpoint",
});

const description = "How metrics and traces leave the pods.";

/** Of a pool. */
export const PodTelemetry = Type.Object(podTelemetry, { description, ...oneWay });

const ServiceMonitor = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description:
        "Make a ServiceMonitor for the API and the models, and a PodMonitor for vLLM, for the Prometheus operator. Where it is not installed, they are made once it is.",
    }),
    intervalSeconds: Type.Integer({
      minimum: 5,
      maximum: 3600,
      default: 30,
      description: "How often Prometheus reads /metrics.",
    }),
    labels: Type.Record(
      Type.String(),
      Type.String({ maxLength: 63, pattern: "^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$" }),
      {
        maxProperties: 16,
        default: {},
        description: "Labels that Prometheus selects monitors by, as `release: prometheus`.",
        ...qualifiedNames("telemetry.serviceMonitor.labels", "labels"),
      },
    ),
  },
  { default: {}, description: "Monitors for the Prometheus operator." },
);

export const TelemetrySchema = Type.Object(
  { ...podTelemetry, serviceMonitor: ServiceMonitor },
  { description, ...oneWay },
);
