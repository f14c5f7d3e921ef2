import type { ObservedDeployment, TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { crdMismatch } from "../workload/external-problems.ts";
import { type ConditionState, settleConditions } from "./conditions.ts";
import { stalledStatus } from "./stalled-status.ts";

/** The condition about CRDs of another version than this operator. */

type Owner = TtsDeployment | TtsModelPool;
type Status = NonNullable<Owner["status"]>;

/** Fields that the CRD in the cluster does not have, such as `.status.license.id` or `.status.models[name="mist"].capacity`. */
export type LostFields = readonly string[];

const type = "SchemaMatches";

/** Present only if the CRD is newer, and the spec has fields that this operator does not know. */
export function schemaFinding({ unknownFields = [] }: ObservedDeployment): ConditionState[] {
  if (unknownFields.length === 0) return [];
  const fields = unknownFields.map((field) => `spec.${field}`).join(", ");
  const message = `The CRD is newer than this operator, which ignores the fields that it does not know: ${fields}. Upgrade the operator, or remove these fields.`;
  return [{ type, status: "False", reason: "UnknownFields", message }];
}

/** The status without the fields that an older CRD does not have, and with a condition that names them. */
export function withoutLost(owner: Owner, status: Status, lost: LostFields, now: number): Status {
  if (lost.length === 0) return status;
  const slim = lost.reduce<unknown>((rest, field) => without(rest, segmentsOf(field)), status) as Status;
  const message = `The CRD is older than this operator. The status omits the fields that it does not have: ${lost.join(", ")}. Install the CRDs of the operator's version (kubectl apply --server-side -f crds/, or the chart with crds.enabled).`;
  const about = { observedGeneration: status.observedGeneration, now };
  const finding: ConditionState = { type, status: "False", reason: "FieldsLost", message };
  const others = slim.conditions.filter((condition) => condition.type !== type);
  return {
    ...slim,
    conditions: [...others, ...settleConditions(owner.status?.conditions, [finding], about)],
  } as Status;
}

/** The path below `.status`, without the keys of list items: a field that one item does not have is missing in all. */
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

/** The status of an object that cannot be read. Its children stay unchanged. */
export function unreadableStatus(owner: Owner, detail: string, now: number): Status {
  const what = `${owner.kind} ${owner.metadata.name} cannot be read (${detail}), so the operator changes nothing.`;
  return stalledStatus(owner, crdMismatch(what), now);
}
