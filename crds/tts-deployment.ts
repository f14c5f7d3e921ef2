import { type Static, Type } from "typebox";
import { profiles } from "../config/contract/models.ts";
import { Accelerator } from "./accelerator-fields.ts";
import { Api } from "./api-tier.ts";
import { Cache } from "./cache-fields.ts";
import {
  Cidr,
  DisruptionBudget,
  Drain,
  dnsLabelPattern,
  EngineSchema,
  Env,
  engineRules,
  Image,
  ImagePullSecrets,
  Key,
  Kind,
  MaxConcurrentStreams,
  ObjectName,
  PodTemplate,
  PoolName,
  PriorityClassName,
  ProbesSchema,
  Resources,
  replicasLimit,
  SharedMemory,
  TopologySpread,
} from "./fields.ts";
import { atomicList, mapList, rules, setList } from "./keywords.ts";
import { Rollout } from "./rollout-fields.ts";
import { Scaling, scalingRules } from "./scaling.ts";
import { Conditions, ReplicaCounts } from "./status-fields.ts";
import { TelemetrySchema } from "./telemetry.ts";

/** What a user writes: one text-to-speech service. Type, check and YAML all come from here. */

const License = Type.Object(
  {
    secretRef: Type.Object(
      {
        name: ObjectName("Name of the Secret."),
        key: Key("Key in the Secret.", "license.jwt"),
      },
      { description: "The Secret in the same namespace that holds the license." },
    ),
    gracePeriod: Type.String({
      minLength: 2,
      maxLength: 16,
      pattern: "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$",
      default: "72h",
      description:
        "How long serving goes on after the license stopped being good, as `72h` or `1h30m`. The smaller of this and the license's own grace counts.",
      ...rules({
        rule: "duration(self) <= duration('2160h')",
        message: "license.gracePeriod must be at most 2160h (90 days)",
      }),
    }),
    endpoint: Type.Optional(
      Type.String({
        maxLength: 1024,
        pattern: "^https://[^\\s@]+$",
        description:
          "Where the license's issuer is asked whether it was revoked, as `https://licenses.example.com/v1/status`. Only the license's id is sent, by the API pods. Absent: nobody is ever asked.",
        ...rules({ rule: "isURL(self)", message: "license.endpoint must be an https URL" }),
      }),
    ),
    checkInterval: Type.String({
      minLength: 2,
      maxLength: 16,
      pattern: "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$",
      default: "24h",
      description:
        "How long an answer of the issuer counts: it is asked again before. When it cannot be asked, grace counts from there.",
      ...rules({
        rule: "duration(self) >= duration('1m') && duration(self) <= duration('720h')",
        message: "license.checkInterval must be from 1m to 720h (30 days)",
      }),
    }),
  },
  {
    description:
      "The license, judged offline before anything starts; with `endpoint`, its issuer is asked too.",
  },
);

const Model = Type.Object(
  {
    name: PoolName,
    kind: Kind,
    image: Type.Optional(Image("Image of the model container; the operator's own version when absent.")),
    replicas: Type.Optional(
      Type.Integer({
        ...replicasLimit,
        description:
          "Pods of the pool. Absent: whoever scales the TtsModelPool decides, as `kubectl scale ttsmp` or `scaling`.",
      }),
    ),
    scaling: Type.Optional(Scaling),
    resources: Resources("Resources of the model container.", { cpu: "100m", memory: "512Mi" }),
    engine: Type.Optional(EngineSchema),
    env: Type.Optional(Env),
    accelerator: Type.Optional(Accelerator),
    cache: Type.Optional(Cache),
    sharedMemory: Type.Optional(SharedMemory),
    priorityClassName: Type.Optional(PriorityClassName),
    podTemplate: Type.Optional(PodTemplate),
    maxConcurrentStreams: MaxConcurrentStreams,
    rollout: Rollout,
    drain: Drain,
    probes: ProbesSchema,
  },
  rules(
    ...scalingRules,
    ...engineRules,
    {
      rule: "!self.name.endsWith('-canary')",
      message: "models[].name must not end in `-canary`: canaries of pools are named so",
      fieldPath: ".name",
    },
    {
      rule: "!has(self.rollout.canary) || self.name.size() <= 13",
      message:
        "models[].name must be at most 13 characters where rollout.canary is set: its canary's name is longer",
      fieldPath: ".name",
    },
  ),
);

const Availability = Type.Object(
  {
    podDisruptionBudget: DisruptionBudget,
    topologySpread: Type.Optional(TopologySpread),
  },
  { default: {}, description: "How the pods are kept from going away together." },
);

const Port = (description: string) => Type.Integer({ minimum: 1, maximum: 65_535, description });

const NetworkPolicy = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description:
        "Make NetworkPolicies: model pods take connections from the API pods alone and open none that they need not; API pods reach models, names, the API server and the license. Needs a network that enforces them.",
    }),
    apiServer: Type.Object(
      {
        cidrs: Type.Array(Cidr("A network."), {
          maxItems: 16,
          default: [],
          ...setList,
          description:
            "Where the Kubernetes API server answers, as `kubectl get endpointslices -n default` shows; the API pods follow their models there. Empty: any address, on the ports below.",
        }),
        ports: Type.Array(Port("A port."), {
          minItems: 1,
          maxItems: 8,
          default: [443, 6443],
          ...setList,
          description: "Its ports, before and behind its Service.",
        }),
      },
      { default: {}, description: "The Kubernetes API server, which no selector can name." },
    ),
    licenseEgress: Type.Array(
      Type.Object({
        cidr: Cidr("Network of a license server or proxy."),
        port: Type.Integer({ minimum: 1, maximum: 65_535, default: 443, description: "Its port." }),
      }),
      {
        maxItems: 16,
        default: [],
        ...atomicList,
        description: "What else API pods may reach, to check the license online.",
      },
    ),
    metricsFrom: Type.Array(
      Type.String({ minLength: 1, maxLength: 63, pattern: dnsLabelPattern, description: "A namespace." }),
      {
        maxItems: 16,
        default: [],
        ...setList,
        description: "Namespaces whose pods may read /metrics of model pods, as that of Prometheus.",
      },
    ),
  },
  { default: {}, description: "Who may talk to whom." },
);

const InternalToken = Type.Object(
  {
    rotateEveryDays: Type.Integer({
      minimum: 0,
      maximum: 3650,
      default: 30,
      description:
        "Age at which the token is replaced, with an overlap in which model pods take both; 0: only when the annotation tts.svc.dev/rotate-token gets a new value.",
    }),
  },
  { default: {}, description: "The token that API pods send to model pods; the operator makes it." },
);

export const TtsDeploymentSpecSchema = Type.Object(
  {
    suspend: Type.Boolean({ default: false, description: "Leave everything as it is and write nothing." }),
    profile: Type.Enum([...profiles], {
      default: "self-hosted",
      description: "Which rules requests are held to: `cloud` takes fewer sampling rates.",
    }),
    imagePullSecrets: Type.Optional(ImagePullSecrets),
    api: Api,
    license: License,
    models: Type.Array(Model, {
      minItems: 1,
      maxItems: 8,
      ...mapList("name"),
      description: "Pools of model pods, known by name.",
    }),
    availability: Availability,
    networkPolicy: NetworkPolicy,
    internalToken: InternalToken,
    telemetry: Type.Optional(TelemetrySchema),
  },
  { description: "What should run." },
);

export const TtsDeploymentStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: -1,
      description: "The generation that this status is about; -1 before any operator has looked.",
    }),
    endpoint: Type.Optional(
      Type.String({ maxLength: 512, description: "URL of the API inside the cluster." }),
    ),
    version: Type.Optional(
      Type.String({ maxLength: 256, description: "Version of the API image that runs." }),
    ),
    summary: Type.Object(
      {
        models: Type.String({ maxLength: 32, description: "Pools ready, of all." }),
        streams: Type.String({
          maxLength: 32,
          description: "Streams that all pools together speak at once.",
        }),
      },
      { description: "For the columns of `kubectl get`." },
    ),
    conditions: Conditions,
    models: Type.Array(
      Type.Object({ name: Type.String({ maxLength: 20, description: "The pool." }), ...ReplicaCounts }),
      {
        maxItems: 8,
        ...mapList("name"),
        description: "The pools, in the order of the spec.",
      },
    ),
    license: Type.Object(
      {
        state: Type.Enum(["valid", "grace", "expired", "invalid", "missing"], {
          description: "The verdict.",
        }),
        id: Type.Optional(
          Type.String({
            maxLength: 256,
            description: "Its id (`jti`): what shares it shares its GPUs and streams.",
          }),
        ),
        licensee: Type.Optional(Type.String({ maxLength: 512, description: "Who it is issued to." })),
        expiresAt: Type.Optional(
          Type.String({ format: "date-time", maxLength: 64, description: "When it ends." }),
        ),
        expiresWithinDays: Type.Optional(
          Type.Integer({
            minimum: 0,
            description: "The last warning of its end that an event told: 30, 7 or 1.",
          }),
        ),
        graceUntil: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "When serving ends, while it is no longer good; absent while it is.",
          }),
        ),
        failedAt: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "When it turned missing or invalid while serving; grace counts from here.",
          }),
        ),
        lastValid: Type.Optional(
          Type.Object(
            {
              id: Type.String({ maxLength: 256, description: "Its id (`jti`)." }),
              models: Type.Array(Type.String({ maxLength: 64 }), {
                maxItems: 16,
                description: "Models that it covers.",
              }),
              maxGpus: Type.Number({ description: "GPUs that it allows." }),
              maxStreams: Type.Number({ description: "Streams that it allows." }),
              graceDays: Type.Number({ description: "Its own grace." }),
            },
            {
              description:
                "What the last license that was good allows; it still counts in the grace of one that vanished or cannot be read.",
            },
          ),
        ),
        lastCheckTime: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "When its issuer last answered; only with license.endpoint.",
          }),
        ),
        checkSince: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "Since when a first answer of its issuer is awaited.",
          }),
        ),
      },
      { description: "The license as last judged." },
    ),
    operator: Type.Optional(
      Type.String({
        maxLength: 512,
        description: "Who wrote this: namespace and name of the operator's Lease.",
      }),
    ),
  },
  { description: "What runs." },
);

export type TtsDeploymentSpec = Static<typeof TtsDeploymentSpecSchema>;
export type TtsDeploymentStatus = Static<typeof TtsDeploymentStatusSchema>;
export type ModelSpec = TtsDeploymentSpec["models"][number];
export type Condition = TtsDeploymentStatus["conditions"][number];

/** Rules over the whole object, where `self.metadata.name` is known. */
export const deploymentNameRule = {
  rule: "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
  message:
    "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter: Services are named after it",
};
