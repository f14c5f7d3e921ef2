import { type Static, Type } from "typebox";
import { atomicList, rules } from "./keywords.ts";

/** The schema of `scaling`: how the number of replicas follows the demand. */

const Policy = Type.Object({
  type: Type.Enum(["Pods", "Percent"], {
    description:
      "Unit of `value`: a number of pods (`Pods`), or a percentage of the current pods (`Percent`).",
  }),
  value: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    description: "Change that is allowed within periodSeconds.",
  }),
  periodSeconds: Type.Integer({ minimum: 1, maximum: 1800, description: "Length of the period in seconds." }),
});

const Direction = (description: string) =>
  Type.Object(
    {
      stabilizationWindowSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 3600,
          description:
            "Seconds of recent recommendations to consider. Scaling up uses the lowest of them, scaling down the highest. The default is 0 for scaling up and 300 for scaling down.",
        }),
      ),
      selectPolicy: Type.Enum(["Max", "Min", "Disabled"], {
        default: "Max",
        description:
          "Which policy applies: the one that allows the largest change (`Max`), the smallest change (`Min`), or none (`Disabled`).",
      }),
      policies: Type.Optional(
        Type.Array(Policy, {
          minItems: 1,
          maxItems: 4,
          ...atomicList,
          description:
            "Policies that limit the speed. By default scaling up has no limit (HPA and KEDA use their own defaults), and scaling down removes at most half of the pods per minute.",
        }),
      ),
    },
    { default: {}, description },
  );

export const Behavior = Type.Object(
  {
    scaleUp: Direction("How replicas are added."),
    scaleDown: Direction("How replicas are removed."),
  },
  { description: "How fast the number of replicas follows the demand, as in a HorizontalPodAutoscaler." },
);

const Target = Type.Object(
  {
    streamsPerReplica: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000,
        description:
          "Streams, in progress or queued, for each replica. The default is three quarters of maxConcurrentStreams.",
      }),
    ),
    initialLatencyMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600_000,
        description:
          "Highest 90th percentile of the time to first audio in milliseconds. The operator also adds replicas while the time is higher. Only with provider Builtin.",
      }),
    ),
  },
  { description: "The load that one replica should carry." },
);

export const Scaling = Type.Object(
  {
    provider: Type.Enum(["Builtin", "HPA", "KEDA", "External"], {
      default: "Builtin",
      description:
        "Which controller sets the number of replicas: `Builtin` is the operator itself; `HPA` is a HorizontalPodAutoscaler, which needs an adapter for the external metric `svc_tts_pool_streams`; `KEDA` is a ScaledObject; `External` is any other controller that uses the scale subresource of the TtsModelPool.",
    }),
    minReplicas: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1000,
        description:
          "Lowest number of replicas; the default is 1. With 0 the pool scales to zero without demand, and the API tier holds the first requests until a replica is ready. With HPA the cluster needs the feature gate HPAScaleToZero.",
      }),
    ),
    maxReplicas: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: "Highest number of replicas. The license may allow fewer.",
      }),
    ),
    target: Type.Optional(Target),
    behavior: Type.Optional(Behavior),
  },
  {
    description: "Scales the replicas by the demand for streams. Use it instead of replicas.",
    ...rules(
      {
        rule: "self.provider == 'External' || has(self.maxReplicas)",
        message: "scaling.maxReplicas is required unless provider is External",
        fieldPath: ".maxReplicas",
      },
      {
        rule: "self.provider != 'External' || !(has(self.minReplicas) || has(self.maxReplicas) || has(self.target) || has(self.behavior))",
        message:
          "scaling with provider External must not have minReplicas, maxReplicas, target or behavior: the external controller decides",
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

/** The rule for the object that contains `scaling`. */
export const scalingRules = [
  {
    rule: "!has(self.replicas) || !has(self.scaling)",
    message: "models must not have both replicas and scaling: only one of them sets the number of replicas",
    fieldPath: ".replicas",
  },
] as const;

export type Scaling = Static<typeof Scaling>;
