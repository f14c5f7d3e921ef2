import { type Static, Type } from "typebox";
import { Accelerator } from "./accelerator-fields.ts";
import { Cache } from "./cache-fields.ts";
import { Downloads } from "./downloads-fields.ts";
import {
  DisruptionBudget,
  Drain,
  EngineSchema,
  Env,
  FixedUserIds,
  Image,
  ImagePullPolicy,
  ImagePullSecrets,
  Kind,
  MaxConcurrentStreams,
  ObjectName,
  PoolName,
  PriorityClassName,
  ProbesSchema,
  Resources,
  replicasLimit,
  SharedMemory,
  TopologySpread,
} from "./fields.ts";
import { fixed } from "./keywords.ts";
import { Rollout } from "./rollout-fields.ts";
import { Scaling } from "./scaling.ts";
import { CanaryStatus, ColdStart, Conditions, ReplicaCounts } from "./status-fields.ts";
import { PodTelemetry } from "./telemetry.ts";

/**
 * The schema of `TtsModelPool`: one pool of model pods. The operator creates one for each entry of
 * `spec.models`. It has the scale subresource.
 */

export const TtsModelPoolSpecSchema = Type.Object(
  {
    deployment: {
      ...ObjectName("Name of the TtsDeployment that the pool belongs to."),
      ...fixed("deployment"),
    },
    pool: PoolName,
    kind: Kind,
    imagePullSecrets: Type.Optional(ImagePullSecrets),
    imagePullPolicy: Type.Optional(ImagePullPolicy),
    fixedUserIds: Type.Optional(FixedUserIds),
    image: Type.Optional(
      Image(
        "Image of the model container. If it is absent, the operator selects the image of its own version.",
      ),
    ),
    replicas: Type.Integer({
      ...replicasLimit,
      default: 1,
      description: "Requested number of pods, which `kubectl scale` also sets. The license may allow fewer.",
    }),
    scaling: Type.Optional(Scaling),
    resources: Resources("Resources of the model container."),
    engine: Type.Optional(EngineSchema),
    env: Type.Optional(Env),
    accelerator: Type.Optional(Accelerator),
    cache: Type.Optional(Cache),
    sharedMemory: Type.Optional(SharedMemory),
    priorityClassName: Type.Optional(PriorityClassName),
    podTemplate: Type.Optional(
      Type.String({
        maxLength: 65_536,
        description:
          "The podTemplate of the pool's entry in the TtsDeployment, as JSON. It is text, because a patch may contain null values, which the API server would remove from an object.",
      }),
    ),
    topologySpread: Type.Optional(TopologySpread),
    podDisruptionBudget: DisruptionBudget,
    telemetry: Type.Optional(PodTelemetry),
    downloads: Type.Optional(Downloads),
    maxConcurrentStreams: MaxConcurrentStreams,
    rollout: Rollout,
    drain: Drain,
    probes: ProbesSchema,
  },
  {
    description:
      "The desired state of the pool. The operator writes every field except replicas. For a pool that a user creates manually, the operator starts no pods.",
  },
);

export const TtsModelPoolStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: -1,
      description:
        "Generation of the spec that this status describes. -1 means that no operator has reconciled the object.",
    }),
    ...ReplicaCounts,
    desiredReplicas: Type.Integer({
      minimum: 0,
      description: "Number of pods that are both requested and allowed by the license.",
    }),
    settings: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "Hash of the spec that this status describes, without replicas and scaling.",
      }),
    ),
    selector: Type.String({ maxLength: 512, description: "Label selector of the pods, for autoscalers." }),
    canary: Type.Optional(CanaryStatus),
    coldStart: Type.Optional(ColdStart),
    conditions: Conditions,
  },
  { description: "The observed state of the pool." },
);

export type TtsModelPoolSpec = Static<typeof TtsModelPoolSpecSchema>;
export type TtsModelPoolStatus = Static<typeof TtsModelPoolStatusSchema>;
export type CanaryState = NonNullable<TtsModelPoolStatus["canary"]>;
export type CanarySpec = NonNullable<TtsModelPoolSpec["rollout"]["canary"]>;
