import { Type } from "typebox";
import { mapList } from "./keywords.ts";

/** Parts of the schema of the status: replica counts, conditions, and the state of the canary. */

const Count = (description: string) => Type.Integer({ minimum: 0, description });

const Capacity = Type.Object(
  {
    streams: Count("Concurrent streams that the ready replicas can serve."),
    used: Type.Optional(
      Count("Streams in progress or queued at the last observation. Present for a pool with scaling."),
    ),
  },
  { description: "Capacity and load of the pool." },
);

/**
 * The schema has the fields and limits of `metav1.Condition` (Kubernetes API conventions, "Typical status
 * properties").
 */
export const Conditions = Type.Array(
  Type.Object({
    type: Type.String({
      maxLength: 316,
      description: "Aspect of the object that the condition describes, for example `Ready`.",
    }),
    status: Type.Enum(["True", "False", "Unknown"], {
      description: "Whether the condition holds: `True`, `False` or `Unknown`.",
    }),
    observedGeneration: Type.Integer({
      minimum: 0,
      description: "Generation of the spec for which the condition was evaluated.",
    }),
    lastTransitionTime: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "Time at which status last changed.",
    }),
    reason: Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "Machine-readable reason, in CamelCase.",
    }),
    message: Type.String({ maxLength: 32_768, description: "Explanation for users, with the next step." }),
  }),
  { maxItems: 16, ...mapList("type"), description: "Current conditions of the object." },
);

/** The state of a canary: new settings of the pool that serve a share of its streams. */
export const CanaryStatus = Type.Object(
  {
    phase: Type.Enum(["Starting", "Analysing", "Promoting", "RolledBack"], {
      description:
        "`Starting`: the canary's pods start. `Analysing`: the canary serves its share and is evaluated. `Promoting`: the settings of the canary roll out to all pods of the pool. `RolledBack`: the canary's pods were removed.",
    }),
    settings: Type.String({ maxLength: 64, description: "Hash of the settings that the canary tries." }),
    revision: Type.String({ maxLength: 64, description: "Revision that the canary tries." }),
    attempt: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          "ID of this attempt of the revision. The metrics of its streams have the label revision `REVISION-ATTEMPT`.",
      }),
    ),
    step: Type.Integer({ minimum: 0, description: "Index of the current step, starting at 0." }),
    weight: Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Percentage of the new streams that the canary receives.",
    }),
    since: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "Time at which phase, step or weight last changed.",
    }),
    traded: Type.Integer({
      minimum: 0,
      description: "Number of pods of the pool that were drained to free capacity for the canary's pods.",
    }),
    reason: Type.Optional(
      Type.String({ maxLength: 1024, description: "Machine-readable reason of the rollback, in CamelCase." }),
    ),
    message: Type.Optional(
      Type.String({ maxLength: 4096, description: "Explanation of the rollback for users." }),
    ),
  },
  { description: "The state of the canary. It is present while a canary exists, and after a rollback." },
);

const Revision = (description: string) => Type.String({ maxLength: 64, description });

export const ReplicaCounts = {
  replicas: Count("Number of existing pods."),
  readyReplicas: Count("Number of pods that accept requests."),
  currentRevision: Type.Optional(Revision("Revision of the pod template that last rolled out completely.")),
  updateRevision: Type.Optional(
    Revision("Revision that is rolling out. It equals currentRevision after the rollout."),
  ),
  capacity: Capacity,
};

const Seconds = (description: string) => Type.Integer({ minimum: 0, description });

/** The times of the phases from the creation of a pod to its readiness. */
export const ColdStart = Type.Object(
  {
    pod: Type.String({ maxLength: 253, description: "Name of the pod." }),
    createdAt: Type.String({
      format: "date-time",
      maxLength: 64,
      description: "Time at which the pod was created.",
    }),
    schedulingSeconds: Seconds("Time until the pod was assigned to a node."),
    imageSeconds: Seconds("Time for pulling images, mounting volumes and starting containers."),
    modelSeconds: Seconds(
      "Time for fetching model files in the pod. 0 if the files are in a TtsModelCache or in the image.",
    ),
    warmUpSeconds: Seconds("Time from the start of the model container until it was ready."),
    totalSeconds: Seconds("Time from the creation of the pod until it was ready."),
  },
  {
    description:
      "The start of the newest pod that became ready, by phase. The value is kept when the pod is deleted.",
  },
);
