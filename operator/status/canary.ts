import type { CanaryState } from "../../crds/tts-model-pool.ts";

/** An event about a canary, without the object. */
export interface CanaryEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly note: string;
}

/** Returns the events for a change of the canary, which `kubectl describe` shows. */
export function canaryEvents(before: CanaryState | undefined, after: CanaryState | undefined): CanaryEvent[] {
  if (after === undefined) return before?.phase === "Promoting" ? [promoted(before)] : [];
  const { phase, revision, weight, step } = after;
  const isNew = before?.settings !== after.settings;
  if (!isNew && before.phase === phase && before.step === step) return [];
  switch (phase) {
    case "Starting":
      return isNew ? [normal("CanaryStarted", `The canary of revision ${revision} starts.`)] : [];
    case "Analysing":
      return [
        normal("CanaryWeighted", `The canary of revision ${revision} receives ${weight}% of the streams.`),
      ];
    case "Promoting":
      return [
        normal(
          "CanaryPromoting",
          `The canary of revision ${revision} succeeded. All pods of the pool get this revision.`,
        ),
      ];
    case "RolledBack":
      return [
        {
          type: "Warning",
          reason: "CanaryRolledBack",
          note: `The canary of revision ${revision} was rolled back: ${after.message}.`,
        },
      ];
  }
}

function promoted({ revision }: CanaryState): CanaryEvent {
  return normal("CanaryPromoted", `All pods of the pool run revision ${revision}.`);
}

function normal(reason: string, note: string): CanaryEvent {
  return { type: "Normal", reason, note };
}
