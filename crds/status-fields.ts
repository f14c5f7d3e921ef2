import { Type } from "typebox";
import { mapList } from "./keywords.ts";

/** What the operator reports: counts, conditions and the canary. */

const Count = (description: string) => Type.Integer({ minimum: 0, description });

const Capacity = Type.Object(
  {
    streams: Count("Streams that the ready replicas speak at once."),
    used: Type.Optional(
      Count("Streams that callers have on them, as last looked at; known of a pool with scaling."),
    ),
  },
  { description: "What the pool can take now." },
);

/** As `metav1.Condition`. */
export const Conditions = Type.Array(
  Type.Object({
    type: Type.String({ maxLength: 316, description: "What the condition is about." }),
    status: Type.Enum(["True", "False", "Unknown"], { description: "Whether it holds." }),
    observedGeneration: Type.Integer({ minimum: 0, description: "The generation that it was judged for." }),
    lastTransitionTime: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "When status last changed.",
    }),
    reason: Type.String({ minLength: 1, maxLength: 1024, description: "One word for programs." }),
    message: Type.String({ maxLength: 32_768, description: "A sentence for people, with what to do." }),
  }),
  { maxItems: 16, ...mapList("type"), description: "What holds and what does not." },
);

/** How far the pool's new settings came on a share of its streams. */
export const CanaryStatus = Type.Object(
  {
    phase: Type.Enum(["Starting", "Analysing", "Promoting", "RolledBack"], {
      description:
        "Its pods start; it takes its share and is judged; all pods take over its settings; it was given up.",
    }),
    settings: Type.String({ maxLength: 64, description: "Hash of the settings that it tries." }),
    revision: Type.String({ maxLength: 64, description: "Revision that it tries." }),
    attempt: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "Which attempt of this revision it is: its streams are counted as `revision-attempt`.",
      }),
    ),
    step: Type.Integer({ minimum: 0, description: "Index of its step." }),
    weight: Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Percent of the new streams that it takes.",
    }),
    since: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "When phase, step or weight last changed.",
    }),
    traded: Type.Integer({
      minimum: 0,
      description: "Pods of the pool that were drained to make room for those of the canary.",
    }),
    reason: Type.Optional(Type.String({ maxLength: 1024, description: "Why it was given up, in one word." })),
    message: Type.Optional(Type.String({ maxLength: 4096, description: "The same, in a sentence." })),
  },
  { description: "The canary, while there is one, and after it was rolled back." },
);

const Revision = (description: string) => Type.String({ maxLength: 64, description });

export const ReplicaCounts = {
  replicas: Count("Pods there are."),
  readyReplicas: Count("Pods that take requests."),
  currentRevision: Type.Optional(Revision("Revision of the pod template that last rolled out in full.")),
  updateRevision: Type.Optional(
    Revision("Revision that is rolling out; equal to currentRevision when done."),
  ),
  capacity: Capacity,
};
