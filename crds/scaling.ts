import { type Static, Type } from "typebox";
import { atomicList, rules } from "./keywords.ts";

/** How many replicas a pool has where nobody says it by hand. */

const Policy = Type.Object({
  type: Type.Enum(["Pods", "Percent"], { description: "What `value` counts: pods, or a share of them." }),
  value: Type.Integer({ minimum: 1, maximum: 10_000, description: "Change allowed within the period." }),
  periodSeconds: Type.Integer({ minimum: 1, maximum: 1800, description: "The period." }),
});

const Direction = (description: string) =>
  Type.Object(
    {
      stabilizationWindowSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 3600,
          description:
            "Upwards the lowest, downwards the highest number asked for within this time counts. Absent: 0 upwards, 300 downwards.",
        }),
      ),
      selectPolicy: Type.Enum(["Max", "Min", "Disabled"], {
        default: "Max",
        description: "Which policy counts: the one that allows most, the one that allows least, or none.",
      }),
      policies: Type.Optional(
        Type.Array(Policy, {
          minItems: 1,
          maxItems: 4,
          ...atomicList,
          description:
            "How fast. Absent: upwards at once (with HPA and KEDA, as they do by default), downwards half of the pods a minute.",
        }),
      ),
    },
    { default: {}, description },
  );

export const Behavior = Type.Object(
  {
    scaleUp: Direction("How the number grows."),
    scaleDown: Direction("How the number shrinks."),
  },
  { description: "How fast replicas follow, as in a HorizontalPodAutoscaler." },
);

const Target = Type.Object(
  {
    streamsPerReplica: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000,
        description:
          "Streams, spoken or waiting, per replica. Absent: three quarters of maxConcurrentStreams.",
      }),
    ),
    initialLatencyMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600_000,
        description:
          "The pool also grows while nine in ten requests do not get their first audio within this time. With provider Builtin.",
      }),
    ),
  },
  { description: "What a replica is to bear." },
);

export const Scaling = Type.Object(
  {
    provider: Type.Enum(["Builtin", "HPA", "KEDA", "External"], {
      default: "Builtin",
      description:
        "Who scales: the operator itself; a HorizontalPodAutoscaler, which needs an adapter for the external metric `svc_tts_pool_streams`; a ScaledObject of KEDA; or somebody else by the scale subresource of the TtsModelPool.",
    }),
    minReplicas: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1000,
        description:
          "Fewest replicas; absent: 1. At 0 the pool sleeps without callers, and the API tier holds the first requests until a replica is warm. With HPA the cluster needs the feature HPAScaleToZero.",
      }),
    ),
    maxReplicas: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: "Most replicas; the license may allow fewer." }),
    ),
    target: Type.Optional(Target),
    behavior: Type.Optional(Behavior),
  },
  {
    description: "Replicas follow the streams that callers ask for. In place of replicas.",
    ...rules(
      {
        rule: "self.provider == 'External' || has(self.maxReplicas)",
        message: "scaling.maxReplicas is needed, unless provider is External",
        fieldPath: ".maxReplicas",
      },
      {
        rule: "self.provider != 'External' || !(has(self.minReplicas) || has(self.maxReplicas) || has(self.target) || has(self.behavior))",
        message:
          "scaling with provider External takes no minReplicas, maxReplicas, target or behavior: whoever scales decides",
        fieldPath: ".provider",
      },
      {
        rule: "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        message: "scaling.minReplicas must not exceed scaling.maxReplicas",
        fieldPath: ".minReplicas",
      },
      {
        rule: "self.provider == 'Builtin' || !has(self.target) || !has(self.target.initialLatencyMs)",
        message: "scaling.target.initialLatencyMs needs provider Builtin",
        fieldPath: ".target",
      },
    ),
  },
);

/** For the model that `scaling` stands in. */
export const scalingRules = [
  {
    rule: "!has(self.replicas) || !has(self.scaling)",
    message: "models take replicas or scaling, not both: who scales decides",
    fieldPath: ".replicas",
  },
] as const;

export type Scaling = Static<typeof Scaling>;
