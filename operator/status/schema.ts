import type { ObservedDeployment, TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { crdMismatch } from "../workload/external-problems.ts";
import { type ConditionState, settleConditions } from "./conditions.ts";
import { stalledStatus } from "./stalled-status.ts";

/** The condition about CRDs of another version than this operator. */

type Owner = TtsDeployment | TtsModelPool;
type Status = NonNullable<Owner["status"]>;

/** Fields that the cluster's CRD does not have, as `.status.license.id` or `.status.models[name="mist"].capacity`. */
export type LostFields = readonly string[];

const type = "SchemaMatches";

/** Only where it does not: the CRD is newer, and a user has written what this operator cannot read. */
export function schemaFinding({ unknownFields = [] }: ObservedDeployment): ConditionState[] {
  if (unknownFields.length === 0) return [];
  const fields = unknownFields.map((field) => `spec.${field}`).join(", ");
  const message = `The CRD is newer than this operator, which does not know ${fields}: they have no effect. Upgrade the operator, or take them away.`;
  return [{ type, status: "False", reason: "UnknownFields", message }];
}

/** The status as an older CRD takes it, with a condition that says what it cannot hold. */
export function withoutLost(owner: Owner, status: Status, lost: LostFields, now: number): Status {
  if (lost.length === 0) return status;
  const slim = lost.reduce<unknown>((rest, field) => without(rest, segmentsOf(field)), status) as Status;
  const message = `The CRD is older than this operator and has no ${lost.join(", ")}: they are not shown. Install the CRDs of the operator's own version (kubectl apply --server-side -f crds/, or the chart with crds.enabled).`;
  const about = { observedGeneration: status.observedGeneration, now };
  const finding: ConditionState = { type, status: "False", reason: "FieldsLost", message };
  const others = slim.conditions.filter((condition) => condition.type !== type);
  return {
    ...slim,
    conditions: [...others, ...settleConditions(owner.status?.conditions, [finding], about)],
  } as Status;
}

/** Below `.status`; an item's key is left out: what one item cannot have, none can. */
function segmentsOf(field: string): string[] {
  return field
    .replaceAll(/\[[^\]]*\]/g, "")
    .split(".")
    .filter((name) => name !== "")
    .slice(1);
}

function without(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => without(item, [name, ...rest]));
  const { [name]: child, ...others } = value as Record<string, unknown>;
  if (child === undefined || rest.length === 0) return others;
  return { ...others, [name]: without(child, rest) };
}

/** Nothing can be done for an object that cannot be read; what runs of it stays as it is. */
export function unreadableStatus(owner: Owner, detail: string, now: number): Status {
  const what = `${owner.kind} ${owner.metadata.name} cannot be read (${detail}); everything is left as it is.`;
  return stalledStatus(owner, crdMismatch(what), now);
}
