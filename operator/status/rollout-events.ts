import type { CanaryState, TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";

/** An event about a rollout, without the object. */
export interface RolloutEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly note: string;
}

/** Returns the events for a change of the canary, which `kubectl describe` shows. */
export function canaryEvents(
  before: CanaryState | undefined,
  after: CanaryState | undefined,
): RolloutEvent[] {
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

function promoted({ revision }: CanaryState): RolloutEvent {
  return normal("CanaryPromoted", `All pods of the pool run revision ${revision}.`);
}

function normal(reason: string, note: string): RolloutEvent {
  return { type: "Normal", reason, note };
}

type Revisions = Pick<TtsModelPoolStatus, "currentRevision" | "updateRevision">;

/** Returns the event for a pool that starts to return to this revision. */
export function rollbackEvents(
  before: Revisions | undefined,
  after: Revisions,
  rollbackTo: string | undefined,
): RolloutEvent[] {
  const { updateRevision } = after;
  if (rollbackTo === undefined || updateRevision !== rollbackTo) return [];
  if (before?.updateRevision === updateRevision) return [];
  return [normal("RollbackStarted", `The pods of the pool return to revision ${rollbackTo}.`)];
}
