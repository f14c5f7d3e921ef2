import { Type } from "typebox";
import { atomicList, rules, setList } from "./keywords.ts";

/** How pods are replaced: surge, windows and canaries. */

/** As `Intl` spells them. */
const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;

const SurgeOrUnavailable = (description: string, value: number) =>
  Type.Union(
    [
      Type.Integer({ minimum: 0, maximum: 1000 }),
      Type.String({ maxLength: 4, pattern: "^(100|[1-9]?[0-9])%$" }),
    ],
    { default: value, description },
  );

const Duration = (description: string, more: object) =>
  Type.String({
    minLength: 2,
    maxLength: 16,
    pattern: "^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$",
    description,
    ...more,
  });

const MaintenanceWindow = Type.Object(
  {
    days: Type.Array(Type.Enum([...weekdays], { description: "A day on which the window opens." }), {
      minItems: 1,
      maxItems: 7,
      default: [...weekdays],
      ...setList,
      description: "Days on which it opens.",
    }),
    start: Type.String({
      maxLength: 5,
      pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$",
      description: "Local time at which it opens, as `02:30`.",
    }),
    duration: Duration("How long it stays open, as `2h` or `90m`; it may pass midnight.", {
      ...rules({
        rule: "duration(self) >= duration('10m') && duration(self) <= duration('24h')",
        message: "rollout.maintenanceWindow.duration must be 10m to 24h",
      }),
    }),
    timeZone: Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: "^[A-Za-z0-9_+/-]+$",
      default: "UTC",
      description: "Time zone of start, as `Europe/Berlin` (IANA).",
      ...rules({
        rule: "timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",
        message: "rollout.maintenanceWindow.timeZone must be a time zone, as Europe/Berlin or UTC",
      }),
    }),
  },
  {
    description:
      "When new settings may begin to roll out. They wait for it; what has begun is finished after it. Absent: at any time.",
  },
);

const Analysis = Type.Object(
  {
    intervalSeconds: Type.Integer({
      minimum: 1,
      maximum: 3600,
      default: 30,
      description: "Time between two looks at the metrics of the API pods.",
    }),
    minRequests: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      default: 20,
      description: "Streams that the canary must have spoken before it is judged, and before it is promoted.",
    }),
    maxErrorPercent: Type.Integer({
      minimum: 0,
      maximum: 100,
      default: 1,
      description: "Most of its streams that may fail; those retried elsewhere count too.",
    }),
    maxFirstAudioMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600_000,
        description: "Longest time to first audio, 95th percentile, as the API pods wait for it.",
      }),
    ),
    maxRealTimeFactorPercent: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description:
          "Highest real-time factor, 95th percentile, in percent: 80 is 0.8 s of work for 1 s of sound.",
      }),
    ),
  },
  { default: {}, description: "What the canary is judged by. One look that breaks a bound rolls it back." },
);

const Canary = Type.Object(
  {
    steps: Type.Array(
      Type.Object({
        weight: Type.Integer({
          minimum: 1,
          maximum: 99,
          description: "Percent of the pool's new streams that the canary takes.",
        }),
        pauseSeconds: Type.Integer({
          minimum: 0,
          maximum: 604_800,
          default: 300,
          description: "How long it takes them before the next step.",
        }),
      }),
      {
        minItems: 1,
        maxItems: 10,
        ...atomicList,
        description: "One after the other; after the last the canary is promoted.",
      },
    ),
    analysis: Analysis,
  },
  {
    description:
      "Try new settings on a share of the streams first: in pods of their own, judged by the API pods' metrics, then promoted or rolled back. Absent: they roll out to all.",
    ...rules({
      rule: "self.steps.map(step, step.weight).isSorted() && self.steps.all(step, self.steps.exists_one(other, other.weight == step.weight))",
      message: "rollout.canary.steps must rise in weight",
      fieldPath: ".steps",
    }),
  },
);

const RolloutFields = {
  maxSurge: SurgeOrUnavailable(
    "How many pods beyond `replicas` a rollout may start, as 1 or 25%. The default starts the new pod before it drains the old one.",
    1,
  ),
  maxUnavailable: SurgeOrUnavailable(
    "How many pods below `replicas` a rollout may leave, as 1 or 25%. Set it to 1 and maxSurge to 0 to replace pods in place.",
    0,
  ),
  progressDeadlineSeconds: Type.Integer({
    minimum: 30,
    maximum: 86_400,
    default: 900,
    description: "A rollout without progress for this long is reported as stalled.",
  }),
  whenFull: Type.Enum(["Trade", "Wait"], {
    default: "Trade",
    description:
      "Where a new pod finds no room although it would fit where an old one runs: drain one old pod in exchange, or wait for room, as where nodes are added by themselves.",
  }),
  maintenanceWindow: Type.Optional(MaintenanceWindow),
  canary: Type.Optional(Canary),
};

export const Rollout = Type.Object(RolloutFields, {
  // written out: the API server holds a default to the rule below before it fills in the defaults inside
  default: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 900, whenFull: "Trade" },
  description: "How pods are replaced when the model's settings change.",
  ...rules({
    rule: "!(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",
    message:
      "rollout.maxSurge and rollout.maxUnavailable must not both be zero: no pod could ever be replaced",
    fieldPath: ".maxSurge",
  }),
});
