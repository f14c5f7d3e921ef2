import { type Static, Type } from "typebox";
import { Accelerator } from "./accelerator-fields.ts";
import { Cache } from "./cache-fields.ts";
import {
  DisruptionBudget,
  Drain,
  EngineSchema,
  Env,
  Image,
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
import { CanaryStatus, Conditions, ReplicaCounts } from "./status-fields.ts";
import { PodTelemetry } from "./telemetry.ts";

/** One pool of model pods, written by the operator for each entry of `spec.models`; it carries the scale subresource. */

export const TtsModelPoolSpecSchema = Type.Object(
  {
    deployment: {
      ...ObjectName("Name of the TtsDeployment that the pool belongs to."),
      ...fixed("deployment"),
    },
    pool: PoolName,
    kind: Kind,
    imagePullSecrets: Type.Optional(ImagePullSecrets),
    image: Type.Optional(Image("Image of the model container; the operator's own version when absent.")),
    replicas: Type.Integer({
      ...replicasLimit,
      default: 1,
      description: "Pods asked for, by `kubectl scale` too. The license may hold some back.",
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
          "The pool's podTemplate in the TtsDeployment, as JSON: nulls in it mean something, and objects keep none.",
      }),
    ),
    topologySpread: Type.Optional(TopologySpread),
    podDisruptionBudget: DisruptionBudget,
    telemetry: Type.Optional(PodTelemetry),
    maxConcurrentStreams: MaxConcurrentStreams,
    rollout: Rollout,
    drain: Drain,
    probes: ProbesSchema,
  },
  {
    description:
      "What the pool should run. Written by the operator, replicas aside; for a pool that somebody writes by hand nothing runs.",
  },
);

export const TtsModelPoolStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: -1,
      description: "The generation that this status is about; -1 before any operator has looked.",
    }),
    ...ReplicaCounts,
    desiredReplicas: Type.Integer({
      minimum: 0,
      description: "Pods that the pool is allowed and asked to have.",
    }),
    settings: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "Hash of the spec without replicas and scaling that this status is about.",
      }),
    ),
    selector: Type.String({ maxLength: 512, description: "Label selector of the pods, for autoscalers." }),
    canary: Type.Optional(CanaryStatus),
    conditions: Conditions,
  },
  { description: "What the pool runs." },
);

export type TtsModelPoolSpec = Static<typeof TtsModelPoolSpecSchema>;
export type TtsModelPoolStatus = Static<typeof TtsModelPoolStatusSchema>;
export type CanaryState = NonNullable<TtsModelPoolStatus["canary"]>;
export type CanarySpec = NonNullable<TtsModelPoolSpec["rollout"]["canary"]>;
