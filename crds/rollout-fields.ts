import { Type } from "typebox";
import { atomicList, rules, setList } from "./keywords.ts";

/** The schema of `rollout`: how pods are replaced, with surge, maintenance windows and canaries. */

/**
 * The spelling of weekdays is that of `Intl.DateTimeFormat` with `weekday: "short"`, so that the operator can
 * compare them directly.
 */
const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;

/** The number of revisions of a pool that are kept by default, as for Deployments and StatefulSets. */
export const defaultRevisionHistoryLimit = 10;

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
    days: Type.Array(
      Type.Enum([...weekdays], { description: "Weekday on which the window opens, for example `Mon`." }),
      {
        minItems: 1,
        maxItems: 7,
        default: [...weekdays],
        ...setList,
        description: "Weekdays on which the window opens. The default is every day.",
      },
    ),
    start: Type.String({
      maxLength: 5,
      pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$",
      description: "Local time at which the window opens, for example `02:30`.",
    }),
    duration: Duration(
      "How long the window stays open, from 10 minutes to 24 hours, for example `2h` or `90m`. It may continue after midnight.",
      {
        ...rules({
          rule: "duration(self) >= duration('10m') && duration(self) <= duration('24h')",
          message: "rollout.maintenanceWindow.duration must be 10m to 24h",
        }),
      },
    ),
    timeZone: Type.String({
      minLength: 1,
      maxLength: 64,
      pattern: "^[A-Za-z0-9_+/-]+$",
      default: "UTC",
      description: "IANA time zone of start, for example `Europe/Berlin`.",
      ...rules({
        rule: "timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",
        message:
          "rollout.maintenanceWindow.timeZone must be an IANA time zone, for example Europe/Berlin or UTC",
      }),
    }),
  },
  {
    description:
      "When a rollout of new settings may start. A rollout that has started continues after the end of the window. If it is absent, rollouts start at any time.",
  },
);

const Analysis = Type.Object(
  {
    intervalSeconds: Type.Integer({
      minimum: 1,
      maximum: 3600,
      default: 30,
      description: "Seconds between two evaluations of the API pods' metrics.",
    }),
    minRequests: Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      default: 20,
      description:
        "Number of streams that the canary must serve before the operator evaluates or promotes it.",
    }),
    maxErrorPercent: Type.Integer({
      minimum: 0,
      maximum: 100,
      default: 1,
      description:
        "Highest percentage of the canary's streams that may fail. Streams that were retried on another replica count as failed.",
    }),
    maxFirstAudioMs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 600_000,
        description:
          "Highest 95th percentile of the time to first audio in milliseconds, as the API pods measure it.",
      }),
    ),
    maxRealTimeFactorPercent: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description:
          "Highest 95th percentile of the real-time factor, in percent. 80 means 0.8 s of work for 1 s of audio.",
      }),
    ),
  },
  {
    default: {},
    description: "Limits for the canary's metrics. One evaluation beyond a limit rolls the canary back.",
  },
);

const Canary = Type.Object(
  {
    steps: Type.Array(
      Type.Object({
        weight: Type.Integer({
          minimum: 1,
          maximum: 99,
          description: "Percentage of the pool's new streams that the canary receives.",
        }),
        pauseSeconds: Type.Integer({
          minimum: 0,
          maximum: 604_800,
          default: 300,
          description:
            "How long the canary keeps this percentage before the next step, in seconds, for example 600.",
        }),
      }),
      {
        minItems: 1,
        maxItems: 10,
        ...atomicList,
        description: "Steps of the canary in this order. The canary is promoted after the last one.",
      },
    ),
    analysis: Analysis,
  },
  {
    description:
      "Tries new settings on a share of the streams first. The operator evaluates the canary with the metrics of the API pods, and then promotes or rolls back the settings. If it is absent, new settings roll out to all pods.",
    ...rules({
      rule: "self.steps.map(step, step.weight).isSorted() && self.steps.all(step, self.steps.exists_one(other, other.weight == step.weight))",
      message: "rollout.canary.steps must increase in weight",
      fieldPath: ".steps",
    }),
  },
);

const RolloutFields = {
  maxSurge: SurgeOrUnavailable(
    "Number or percentage of pods above `replicas` that a rollout may start, for example 1 or 25%. With the default, the new pod starts before the old one drains.",
    1,
  ),
  maxUnavailable: SurgeOrUnavailable(
    "Number or percentage of pods by which a rollout may fall below `replicas`, for example 1 or 25%. Set it to 1 and maxSurge to 0 to replace pods in place.",
    0,
  ),
  progressDeadlineSeconds: Type.Integer({
    minimum: 30,
    maximum: 86_400,
    default: 900,
    description: "Seconds without progress after which a rollout is reported as stalled.",
  }),
  whenFull: Type.Enum(["Trade", "Wait"], {
    default: "Trade",
    description:
      "What to do when a new pod is unschedulable only because the old pods occupy the capacity: `Trade` drains one old pod to free its capacity. `Wait` waits for capacity, for example in a cluster with an autoscaler for nodes.",
  }),
  maintenanceWindow: Type.Optional(MaintenanceWindow),
  canary: Type.Optional(Canary),
  revisionHistoryLimit: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100,
      description: `Number of revisions that the history of the pool keeps. If it is absent, the history keeps ${defaultRevisionHistoryLimit} revisions.`,
    }),
  ),
  rollbackTo: Type.Optional(
    Type.String({
      maxLength: 10,
      pattern: "^[0-9a-f]{10}$",
      description:
        "Revision of the pool's history to which the pods return, for example `5f2c0a9be1`. While it is set, the settings of this revision apply instead of the settings of the model, except name, replicas, scaling and rollout. The pods return at once, without a canary and outside the maintenance window.",
    }),
  ),
};

/** The rollout of the API tier. */
export const ApiRollout = Type.Object(
  { maintenanceWindow: Type.Optional(MaintenanceWindow) },
  { description: "How API pods are replaced when their settings change." },
);

export const Rollout = Type.Object(RolloutFields, {
  // The default is written out in full, because the API server validates a default against the rule below
  // before it fills in nested defaults.
  default: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 900, whenFull: "Trade" },
  description: "How pods are replaced when the model's settings change.",
  ...rules({
    rule: "!(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",
    message: "rollout.maxSurge and rollout.maxUnavailable must not both be zero: no pod could be replaced",
    fieldPath: ".maxSurge",
  }),
});
