import { type Static, Type } from "typebox";
import { licenseStates, usualGracePeriod } from "../config/contract/license.ts";
import { profiles } from "../config/contract/models.ts";
import { licenseKey } from "../config/contract/names.ts";
import { Accelerator } from "./accelerator-fields.ts";
import { Api } from "./api-tier.ts";
import { Cache } from "./cache-fields.ts";
import { Downloads } from "./downloads-fields.ts";
import {
  Cidr,
  DisruptionBudget,
  Drain,
  dnsLabelPattern,
  EngineSchema,
  Env,
  engineRules,
  FixedUserIds,
  Image,
  ImagePullPolicy,
  ImagePullSecrets,
  Key,
  Kind,
  MaxConcurrentStreams,
  ObjectName,
  PodTemplate,
  PoolName,
  PriorityClassName,
  ProbesSchema,
  ProfileName,
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

/**
 * The schema of `TtsDeployment`: one text-to-speech service. The TypeScript types and the YAML of the CRD are
 * derived from this schema.
 */

const License = Type.Object(
  {
    secretRef: Type.Object(
      {
        name: ObjectName("Name of the Secret."),
        key: Key("Key in the Secret.", licenseKey),
      },
      { description: "The Secret in the same namespace that holds the license." },
    ),
    gracePeriod: Type.String({
      minLength: 2,
      maxLength: 16,
      pattern: "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$",
      default: usualGracePeriod,
      description:
        "How long the service continues after the license has become invalid, for example `72h` or `1h30m`. The smaller value of this field and the license's own grace period applies.",
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
          "URL of the issuer's online check, which reports revoked licenses, for example `https://licenses.example.com/v1/status`. The API pods send only the license's ID. If it is absent, there is no online check.",
        ...rules({ rule: "isURL(self)", message: "license.endpoint must be an https URL" }),
      }),
    ),
    checkInterval: Type.String({
      minLength: 2,
      maxLength: 16,
      pattern: "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$",
      default: "24h",
      description:
        "How long a response of the issuer is valid, for example `24h`. The API pods repeat the check earlier. If the issuer is not reachable, the grace period starts at the end of this time.",
      ...rules({
        rule: "duration(self) >= duration('1m') && duration(self) <= duration('720h')",
        message: "license.checkInterval must be from 1m to 720h (30 days)",
      }),
    }),
  },
  {
    description:
      "The license. It is verified offline before any pod starts, and with `endpoint` also online. It is required if the operator trusts license keys (chart value `license.jwks`). Otherwise it may be absent, and the Secret is not read.",
  },
);

export const ModelSchema = Type.Object(
  {
    name: PoolName,
    kind: Kind,
    image: Type.Optional(
      Image(
        "Image of the model container. If it is absent, the operator selects the image of its own version.",
      ),
    ),
    replicas: Type.Optional(
      Type.Integer({
        ...replicasLimit,
        description:
          "Number of pods of the pool. If it is absent, the number is set on the TtsModelPool, by `kubectl scale ttsmp` or by `scaling`.",
      }),
    ),
    scaling: Type.Optional(Scaling),
    resources: Resources(
      "Resources of the model container. The default fits the engines of the image. With engine.type vllm or kokoro, a pool with the default requests `cpu: 2`, and `memory: 8Gi` or `memory: 2Gi`.",
      { cpu: "100m", memory: "512Mi" },
    ),
    engine: Type.Optional(EngineSchema),
    env: Type.Optional(Env),
    accelerator: Type.Optional(Accelerator),
    acceleratorProfile: Type.Optional(
      ProfileName(
        "Accelerator profile of the TtsClass, for example `l4`. It sets `accelerator` to the value of the profile.",
      ),
    ),
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
      message: "models[].name must not end in `-canary`: the names of canaries have this ending",
      fieldPath: ".name",
    },
    {
      rule: "!has(self.rollout.canary) || self.name.size() <= 13",
      message:
        "models[].name must be at most 13 characters if rollout.canary is set: the name of the canary is longer",
      fieldPath: ".name",
    },
    {
      rule: "!has(self.accelerator) || !has(self.acceleratorProfile)",
      message:
        "models must not have both accelerator and acceleratorProfile: the profile sets the accelerator",
      fieldPath: ".acceleratorProfile",
    },
  ),
);

const Availability = Type.Object(
  {
    podDisruptionBudget: DisruptionBudget,
    topologySpread: Type.Optional(TopologySpread),
  },
  {
    default: {},
    description: "Limits how many pods a voluntary disruption or a node failure affects at once.",
  },
);

const Port = (description: string) => Type.Integer({ minimum: 1, maximum: 65_535, description });

const NetworkPolicy = Type.Object(
  {
    enabled: Type.Boolean({
      default: false,
      description:
        "Create NetworkPolicies. Model pods accept connections only from API pods and from the namespaces of metricsFrom. API pods may connect to the models, DNS and the Kubernetes API server, and to the ports of the services that the spec names: Valkey, the database, the identity provider and the license issuer. Model pods may connect only to the sources of their files and to the telemetry backend. The cluster's network plugin must enforce NetworkPolicies.",
    }),
    apiServer: Type.Object(
      {
        cidrs: Type.Array(Cidr("A network."), {
          maxItems: 16,
          default: [],
          ...setList,
          description:
            "Addresses of the Kubernetes API server, as `kubectl get endpointslices -n default` shows them. The API pods watch the endpoints of their models there. If it is empty, any address is allowed on `ports`.",
        }),
        ports: Type.Array(Port("A port."), {
          minItems: 1,
          maxItems: 8,
          default: [443, 6443],
          ...setList,
          description: "Ports of the Kubernetes API server: of its Service and of its endpoints.",
        }),
      },
      {
        default: {},
        description: "The Kubernetes API server, which a NetworkPolicy cannot select by labels.",
      },
    ),
    licenseEgress: Type.Array(
      Type.Object({
        cidr: Cidr("Network of a license issuer or of a proxy, for example `203.0.113.0/24`."),
        port: Type.Integer({
          minimum: 1,
          maximum: 65_535,
          default: 443,
          description: "Port of the license issuer or of the proxy.",
        }),
      }),
      {
        maxItems: 16,
        default: [],
        ...atomicList,
        description:
          "Additional networks to which API pods may connect, for the online check of the license.",
      },
    ),
    metricsFrom: Type.Array(
      Type.String({ minLength: 1, maxLength: 63, pattern: dnsLabelPattern, description: "A namespace." }),
      {
        maxItems: 16,
        default: [],
        ...setList,
        description:
          "Namespaces whose pods may read /metrics of model pods, for example the namespace of Prometheus.",
      },
    ),
  },
  { default: {}, description: "Which network connections the pods accept and open." },
);

const InternalToken = Type.Object(
  {
    rotateEveryDays: Type.Integer({
      minimum: 0,
      maximum: 3650,
      default: 30,
      description:
        "Age in days at which the token is rotated. During a rotation, model pods accept the old and the new token. With 0 the token is rotated only when the annotation tts.svc.dev/rotate-token gets a new value.",
    }),
  },
  { default: {}, description: "The token that API pods send to model pods. The operator creates it." },
);

export const TtsDeploymentSpecSchema = Type.Object(
  {
    suspend: Type.Boolean({
      default: false,
      description: "Stop reconciling: the operator does not change any child.",
    }),
    profile: Type.Enum([...profiles], {
      default: "self-hosted",
      description: "Rules for requests. `cloud` accepts fewer sampling rates than `self-hosted`.",
    }),
    className: Type.Optional(
      ObjectName(
        "Name of the TtsClass whose defaults and limits apply. If it is absent, the default TtsClass of the cluster applies, if there is one.",
      ),
    ),
    imagePullSecrets: Type.Optional(ImagePullSecrets),
    imagePullPolicy: Type.Optional(ImagePullPolicy),
    fixedUserIds: Type.Optional(FixedUserIds),
    api: Api,
    license: Type.Optional(License),
    models: Type.Array(ModelSchema, {
      minItems: 1,
      maxItems: 8,
      ...mapList("name"),
      description: "Pools of model pods. Each name is unique.",
    }),
    availability: Availability,
    networkPolicy: NetworkPolicy,
    internalToken: InternalToken,
    telemetry: Type.Optional(TelemetrySchema),
    downloads: Type.Optional(Downloads),
  },
  { description: "The desired state of the service." },
);

/** The longest spec that the status can hold, in characters. */
export const longestAcceptedSpec = 262_144;

export const TtsDeploymentStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: -1,
      description:
        "Generation of the spec that this status describes. -1 means that no operator has reconciled the object.",
    }),
    endpoint: Type.Optional(
      Type.String({ maxLength: 512, description: "URL of the API inside the cluster." }),
    ),
    version: Type.Optional(
      Type.String({ maxLength: 256, description: "Version of the API image that is running." }),
    ),
    summary: Type.Object(
      {
        models: Type.String({
          maxLength: 32,
          description: "Number of ready pools, and number of all pools, for example `2/3`.",
        }),
        streams: Type.String({
          maxLength: 32,
          description:
            "Concurrent streams that the ready replicas of all pools can serve. With scaling, the streams in use are in front, for example `12/32`.",
        }),
      },
      { description: "Values for the columns of `kubectl get`." },
    ),
    conditions: Conditions,
    models: Type.Array(
      Type.Object({
        name: Type.String({ maxLength: 20, description: "Name of the pool." }),
        ...ReplicaCounts,
        recordedRevision: Type.Optional(
          Type.String({ maxLength: 64, description: "Newest revision in the history of the pool." }),
        ),
      }),
      {
        maxItems: 8,
        ...mapList("name"),
        description: "State of the pools, in the order of the spec.",
      },
    ),
    license: Type.Object(
      {
        state: Type.Enum([...licenseStates], {
          description: "Result of the license evaluation.",
        }),
        id: Type.Optional(
          Type.String({
            maxLength: 256,
            description:
              "ID of the license (`jti`). TtsDeployments with the same license share its GPUs and streams.",
          }),
        ),
        licensee: Type.Optional(
          Type.String({ maxLength: 512, description: "Organization to which the license was issued." }),
        ),
        expiresAt: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "Time at which the license expires.",
          }),
        ),
        expiresWithinDays: Type.Optional(
          Type.Integer({
            minimum: 0,
            description: "The last expiry warning that was sent as an event: 30, 7 or 1 days before the end.",
          }),
        ),
        graceUntil: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description:
              "Time at which the grace period ends, and API pods start to reject requests. Present while the license is not valid.",
          }),
        ),
        failedAt: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "Time at which the license became missing or invalid. The grace period starts here.",
          }),
        ),
        lastValid: Type.Optional(
          Type.Object(
            {
              id: Type.String({ maxLength: 256, description: "ID of the license (`jti`)." }),
              models: Type.Array(Type.String({ maxLength: 64 }), {
                maxItems: 16,
                description: "Models that the license allows.",
              }),
              maxGpus: Type.Number({ description: "Number of GPUs that the license allows." }),
              maxStreams: Type.Number({
                description: "Number of concurrent streams that the license allows.",
              }),
              graceDays: Type.Number({ description: "Grace period of the license in days." }),
            },
            {
              description:
                "Limits of the last valid license. They apply during the grace period of a license that is missing or unreadable.",
            },
          ),
        ),
        lastCheckTime: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "Time of the issuer's last response. Present only with license.endpoint.",
          }),
        ),
        checkSince: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "Time at which the operator began to wait for the first response of the issuer.",
          }),
        ),
      },
      { description: "The last evaluation of the license." },
    ),
    class: Type.Optional(
      Type.Object(
        {
          name: Type.Optional(
            Type.String({
              maxLength: 253,
              description: "Name of the TtsClass. It is absent if no class applied.",
            }),
          ),
          isDefault: Type.Boolean({
            description: "Whether the class applied because it was the default TtsClass of the cluster.",
          }),
          generation: Type.Integer({
            minimum: 0,
            description: "Generation of the spec that was last accepted.",
          }),
          spec: Type.String({
            maxLength: longestAcceptedSpec,
            description:
              "The last accepted spec with the defaults of the class, as JSON. The operator keeps it while a later spec exceeds the limits of its class, or while the class does not exist.",
          }),
        },
        { description: "The spec that was last accepted, and the TtsClass that accepted it." },
      ),
    ),
    operator: Type.Optional(
      Type.String({
        maxLength: 512,
        description: "The operator that wrote this status: namespace and name of its Lease.",
      }),
    ),
  },
  { description: "The observed state of the service." },
);

export type TtsDeploymentSpec = Static<typeof TtsDeploymentSpecSchema>;
export type TtsDeploymentStatus = Static<typeof TtsDeploymentStatusSchema>;
/** The class that was last applied, as the status holds it. */
export type ClassRecord = NonNullable<TtsDeploymentStatus["class"]>;
export type ModelSpec = TtsDeploymentSpec["models"][number];
export type Condition = TtsDeploymentStatus["conditions"][number];

/**
 * The rule for the name of a `TtsDeployment`. It applies to the whole object, because `self.metadata.name` is
 * available only there.
 */
export const deploymentNameRule = {
  rule: "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
  message:
    "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter: the names of Services contain it",
};
