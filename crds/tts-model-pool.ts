import { type Static, Type } from "typebox";
import {
  Accelerator,
  Conditions,
  Drain,
  Env,
  Image,
  ImagePullSecrets,
  Kind,
  MaxConcurrentStreams,
  ObjectName,
  PoolName,
  Probes,
  ReplicaCounts,
  Resources,
  Rollout,
  replicasLimit,
} from "./fields.ts";

/** One pool of model pods, written by the operator for each entry of `spec.models`; it carries the scale subresource. */

export const TtsModelPoolSpecSchema = Type.Object(
  {
    deployment: ObjectName("Name of the TtsDeployment that the pool belongs to."),
    pool: PoolName,
    kind: Kind,
    imagePullSecrets: Type.Optional(ImagePullSecrets),
    image: Type.Optional(Image("Image of the model container; the operator's own version when absent.")),
    replicas: Type.Integer({
      ...replicasLimit,
      default: 1,
      description: "Pods asked for, by `kubectl scale` too. The license may hold some back.",
    }),
    resources: Resources("Resources of the model container."),
    env: Type.Optional(Env),
    accelerator: Type.Optional(Accelerator),
    maxConcurrentStreams: MaxConcurrentStreams,
    rollout: Rollout,
    drain: Drain,
    probes: Probes,
  },
  { description: "What the pool should run. Written by the operator, replicas aside." },
);

export const TtsModelPoolStatusSchema = Type.Object(
  {
    observedGeneration: Type.Integer({
      minimum: 0,
      description: "The generation that this status is about.",
    }),
    ...ReplicaCounts,
    desiredReplicas: Type.Integer({
      minimum: 0,
      description: "Pods that the pool is allowed and asked to have.",
    }),
    selector: Type.String({ maxLength: 512, description: "Label selector of the pods, for autoscalers." }),
    conditions: Conditions,
  },
  { description: "What the pool runs." },
);

export type TtsModelPoolSpec = Static<typeof TtsModelPoolSpecSchema>;
export type TtsModelPoolStatus = Static<typeof TtsModelPoolStatusSchema>;
