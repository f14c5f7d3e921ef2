import { type Static, Type } from "typebox";
import { profiles } from "../config/contract/models.ts";
import {
  Accelerator,
  Conditions,
  Drain,
  Env,
  Image,
  ImagePullSecrets,
  Kind,
  keyPattern,
  MaxConcurrentStreams,
  ObjectName,
  PoolName,
  Probes,
  qualifiedNames,
  ReplicaCounts,
  Resources,
  Rollout,
  replicasLimit,
} from "./fields.ts";
import { mapList, rules } from "./keywords.ts";

/** What a user writes: one text-to-speech service. Type, check and YAML all come from here. */

const Service = Type.Object(
  {
    type: Type.Enum(["ClusterIP", "NodePort", "LoadBalancer"], {
      default: "ClusterIP",
      description: "How the API's Service is reached.",
    }),
    annotations: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
      maxProperties: 32,
      default: {},
      description: "Annotations of the Service, for a load balancer's settings.",
      ...qualifiedNames("api.service.annotations", "annotations"),
    }),
  },
  { default: {}, description: "The Service of the API tier." },
);

const Api = Type.Object(
  {
    image: Type.Optional(Image("Image of the API container; the operator's own version when absent.")),
    replicas: Type.Integer({ minimum: 1, maximum: 1000, default: 1, description: "API pods." }),
    resources: Resources("Resources of the API container.", { cpu: "100m", memory: "128Mi" }),
    drain: Drain,
    service: Service,
    keys: Type.Optional(
      Type.Object(
        {
          secretRef: Type.Object(
            {
              name: ObjectName("Name of the Secret; key `keys.yaml` holds the digests."),
            },
            { description: "A Secret in the same namespace." },
          ),
        },
        { description: "API keys that callers may use. Absent: no caller is let in." },
      ),
    ),
  },
  { default: {}, description: "The API tier: what callers talk to." },
);

const License = Type.Object(
  {
    secretRef: Type.Object(
      {
        name: ObjectName("Name of the Secret."),
        key: Type.String({
          minLength: 1,
          maxLength: 253,
          pattern: keyPattern,
          default: "license.jwt",
          description: "Key in the Secret.",
        }),
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
  },
  { description: "The license, judged offline before anything starts." },
);

const Model = Type.Object({
  name: PoolName,
  kind: Kind,
  image: Type.Optional(Image("Image of the model container; the operator's own version when absent.")),
  replicas: Type.Optional(
    Type.Integer({
      ...replicasLimit,
      description:
        "Pods of the pool. Absent: whoever scales the TtsModelPool decides, as `kubectl scale ttsmp`.",
    }),
  ),
  resources: Resources("Resources of the model container.", { cpu: "100m", memory: "384Mi" }),
  env: Type.Optional(Env),
  accelerator: Type.Optional(Accelerator),
  maxConcurrentStreams: MaxConcurrentStreams,
  rollout: Rollout,
  drain: Drain,
  probes: Probes,
});

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
  },
  { description: "What should run." },
);

export const TtsDeploymentStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: 0,
      description: "The generation that this status is about.",
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
        licensee: Type.Optional(Type.String({ maxLength: 512, description: "Who it is issued to." })),
        expiresAt: Type.Optional(
          Type.String({ format: "date-time", maxLength: 64, description: "When it ends." }),
        ),
        failedAt: Type.Optional(
          Type.String({
            format: "date-time",
            maxLength: 64,
            description: "When it turned missing or invalid while serving; grace counts from here.",
          }),
        ),
      },
      { description: "The license as last judged." },
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
