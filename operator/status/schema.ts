import type { ObservedDeployment, Reconciled } from "../facts/observed.ts";
import { crdMismatch } from "../workload/external-problems.ts";
import { type ConditionState, settleConditions } from "./conditions.ts";
import { stalledStatus } from "./stalled-status.ts";

/** The condition SchemaMatches, which reports that the CRDs and the operator have different versions. */

type Status = NonNullable<Reconciled["status"]>;

/**
 * Fields that the CRD in the cluster does not contain, such as `.status.license.id` or
 * `.status.models[name="mist"].capacity`.
 */
export type LostFields = readonly string[];

const type = "SchemaMatches";

/**
 * Returns the condition for a newer CRD. It is present only if the spec has fields that this operator does
 * not know.
 */
export function schemaFinding({ unknownFields = [] }: ObservedDeployment): ConditionState[] {
  if (unknownFields.length === 0) return [];
  const fields = unknownFields.map((field) => `spec.${field}`).join(", ");
  const message = `The CRD is newer than this operator, so the operator ignores these fields: ${fields}. Upgrade the operator, or remove these fields.`;
  return [{ type, status: "False", reason: "UnknownFields", message }];
}

/**
 * Returns the status without the fields that an older CRD does not contain, and with a condition that lists
 * these fields.
 */
export function withoutLost(owner: Reconciled, status: Status, lost: LostFields, now: number): Status {
  if (lost.length === 0) return status;
  const slim = lost.reduce<unknown>((rest, field) => without(rest, segmentsOf(field)), status) as Status;
  const message = `The CRD is older than this operator. The status omits the fields that the CRD does not contain: ${lost.join(", ")}. Install the CRDs of the operator's version (kubectl apply --server-side -f crds/, or the chart with crds.enabled).`;
  const about = { observedGeneration: status.observedGeneration, now };
  const finding: ConditionState = { type, status: "False", reason: "FieldsLost", message };
  const others = slim.conditions.filter((condition) => condition.type !== type);
  return {
    ...slim,
    conditions: [...others, ...settleConditions(owner.status?.conditions, [finding], about)],
  } as Status;
}

/**
 * Returns the names of the path below `.status`, without the keys of list items, because a field is missing
 * in every item of a list.
 */
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

/**
 * Returns the status of an object that does not match the schema. The operator does not change the children
 * of such an object.
 */
export function unreadableStatus(owner: Reconciled, detail: string, now: number): Status {
  const what = `${owner.kind} ${owner.metadata.name} does not match the schema of this operator (${detail}), so the operator does not change any child.`;
  return stalledStatus(owner, crdMismatch(what), now);
}
