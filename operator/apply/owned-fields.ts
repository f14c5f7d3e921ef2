import { fieldManager } from "../../config/contract/names.ts";
import { applyConfigurationOf } from "../cluster/apply-configuration.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { nanosOf } from "../facts/quantity.ts";

/** A node of `fieldsV1`: `f:` names a field, `k:` a list item by its keys, `v:` a member of a set, `.` the node itself. */
export type Fields = { [key: string]: Fields };
export type JsonObject = { [name: string]: unknown };

/**
 * Whether applying `desired` would change nothing, judged from `live` alone: every field that `desired` names is ours
 * (`managedFields`, manager `tts-operator`, operation `Apply`) and has that value, and nothing else is ours. Another client that changes a
 * field of ours becomes its owner, so drift shows as a lost field. Values that the server fills in or writes in another form
 * (defaults, quantities, empty values left out) compare equal. `subresource: "status"` judges `.status` instead of the rest.
 */
export function isApplied(
  live: KubernetesObject,
  desired: KubernetesObject,
  options: { subresource?: "status" } = {},
): boolean {
  const owned = ownedFields(live, desired.apiVersion, options);
  if (owned === undefined) return false;
  const wanted = applyConfigurationOf(desired);
  if (options.subresource === "status") {
    return isSame(owned["f:status"], wanted.status, live.status, "status");
  }
  const { apiVersion, kind, metadata, status, ...body } = wanted;
  const { labels, annotations, ownerReferences, finalizers } = metadata;
  const named = { ...body, metadata: { labels, annotations, ownerReferences, finalizers } };
  return isSameMap(owned, named, live as JsonObject);
}

/** The fields that our last apply named, less those taken over since; `undefined` when we never applied this object. */
export function ownedFields(
  live: KubernetesObject,
  apiVersion: string,
  { subresource }: { subresource?: "status" } = {},
): Fields | undefined {
  const entry = live.metadata.managedFields?.find(
    (entry) =>
      entry.manager === fieldManager &&
      entry.operation === "Apply" &&
      entry.apiVersion === apiVersion &&
      (entry.subresource ?? "") === (subresource ?? ""),
  );
  return entry?.fieldsV1 as Fields | undefined;
}

/** `name` is the field's name, or that of the map it is in: it tells where quantities stand. */
function isSame(owned: Fields | undefined, desired: unknown, live: unknown, name: string): boolean {
  if (desired === undefined) return owned === undefined;
  if (owned === undefined) return isUnrecorded(desired);
  if (isLeaf(owned)) return isSameValue(desired, live, name);
  if (Array.isArray(desired)) return isSameList(owned, desired, Array.isArray(live) ? live : []);
  return isMap(desired) && isMap(live) && isSameMap(owned, desired, live, name);
}

function isSameMap(
  owned: Fields,
  desired: JsonObject,
  live: JsonObject,
  name = "",
  keys: JsonObject = {},
): boolean {
  for (const [field, value] of Object.entries(desired)) {
    if (!isSame(owned[`f:${field}`], value, live[field], childName(name, field))) return false;
  }
  // A field of ours that is no longer named has to be pruned. A list's key may be ours by its default.
  return Object.keys(owned).every(
    (key) => !key.startsWith("f:") || desired[key.slice(2)] !== undefined || key.slice(2) in keys,
  );
}

function isSameList(owned: Fields, desired: unknown[], live: unknown[]): boolean {
  const members = Object.keys(owned).filter((key) => key.startsWith("v:"));
  if (members.length > 0) return isSameSet(members, desired, live);
  return isSameKeyedList(owned, desired.filter(isMap), live.filter(isMap));
}

function isSameSet(members: string[], desired: unknown[], live: unknown[]): boolean {
  const text = (values: unknown[]) => new Set(values.map((value) => JSON.stringify(value)));
  const wanted = text(desired);
  const there = text(live);
  return (
    wanted.size === members.length &&
    members.every((member) => wanted.has(member.slice(2))) &&
    [...wanted].every((value) => there.has(value))
  );
}

/** Items are found by their keys, and stand in the live list in the order in which we name them. */
function isSameKeyedList(owned: Fields, desired: JsonObject[], live: JsonObject[]): boolean {
  const entries = Object.entries(owned).filter(([key]) => key.startsWith("k:"));
  if (entries.length !== desired.length) return false;
  const pairs = pairByKeys(entries, desired);
  if (pairs === undefined) return false;
  let last = -1;
  for (const { item, fields, keys } of pairs) {
    const position = live.findIndex((candidate) => hasKeys(candidate, keys));
    const there = live[position];
    if (there === undefined || position < last) return false;
    // An item may be ours as a whole, such as a reference by name.
    const same = isLeaf(fields) ? isSameValue(item, there, "") : isSameMap(fields, item, there, "", keys);
    if (!same) return false;
    last = position;
  }
  return true;
}

type Pair = { item: JsonObject; fields: Fields; keys: JsonObject };

/** Each desired item with the entry of its keys, in desired order. A key that the item leaves out stands for its default (`protocol`). */
function pairByKeys(entries: [string, Fields][], desired: JsonObject[]): Pair[] | undefined {
  const open = new Map(entries.map(([key, fields]) => [JSON.parse(key.slice(2)) as JsonObject, fields]));
  const pairs = new Map<JsonObject, Pair>();
  // Items that name every key choose first: what is left is for those that leave one to its default.
  for (const exact of [true, false]) {
    for (const item of desired) {
      if (pairs.has(item)) continue;
      const match = [...open].find(([keys]) => (exact ? hasKeys(item, keys) : mayHaveKeys(item, keys)));
      if (match === undefined) continue;
      open.delete(match[0]);
      pairs.set(item, { item, fields: match[1], keys: match[0] });
    }
  }
  const inOrder = desired.map((item) => pairs.get(item));
  return inOrder.every((pair) => pair !== undefined) ? inOrder : undefined;
}

export function hasKeys(item: JsonObject, keys: JsonObject): boolean {
  return Object.entries(keys).every(([name, value]) => item[name] === value);
}

export function mayHaveKeys(item: JsonObject, keys: JsonObject): boolean {
  return Object.entries(keys).every(([name, value]) => item[name] === undefined || item[name] === value);
}

/** A value that is ours as a whole: scalars, atomic lists and maps, empty maps. */
function isSameValue(desired: unknown, live: unknown, name: string): boolean {
  if (live === undefined || live === null) return isNothing(desired);
  if (Array.isArray(desired)) return Array.isArray(live) && isSameSequence(desired, live, name);
  if (isMap(desired)) return isMap(live) && isSameWhole(desired, live, name);
  return desired === live || (isQuantity(name) && isSameQuantity(desired, live));
}

function isSameSequence(desired: unknown[], live: unknown[], name: string): boolean {
  return (
    live.length === desired.length && desired.every((value, index) => isSameValue(value, live[index], name))
  );
}

/** Fields inside have no owner of their own: a field that we do not name was either set by the server or left by an earlier apply. */
function isSameWhole(desired: JsonObject, live: JsonObject, name: string): boolean {
  const named = Object.entries(desired).every(([field, value]) =>
    isSameValue(value, live[field], childName(name, field)),
  );
  return (
    named && Object.entries(live).every(([field, value]) => field in desired || isFilledIn(field, value))
  );
}

/** Defaults that the API server sets inside atomic lists and maps (Kubernetes API, types.go, "default"). */
const filledIn: Record<string, readonly unknown[]> = {
  apiGroup: ["", "rbac.authorization.k8s.io"],
  apiVersion: ["v1"],
  divisor: ["0"],
  expirationSeconds: [3600],
  protocol: ["TCP"],
};

function isFilledIn(field: string, value: unknown): boolean {
  return value === null || (filledIn[field]?.includes(value) ?? false);
}

function isSameQuantity(desired: unknown, live: unknown): boolean {
  const nanos = nanosOf(desired);
  return nanos !== undefined && nanos === nanosOf(live);
}

/** Maps whose every value is a quantity, and fields that are one (Kubernetes API, `resource.Quantity`). */
const quantityMaps = new Set(["limits", "requests", "capacity", "allocatable", "hard", "overhead"]);
const quantityFields = new Set(["sizeLimit", "divisor", "averageValue"]);

function isQuantity(name: string): boolean {
  return quantityMaps.has(name) || quantityFields.has(name);
}

function childName(parent: string, field: string): string {
  return quantityMaps.has(parent) ? parent : field;
}

/** Fields that an apply names without owning them: keyed lists and sets without items. */
function isUnrecorded(value: unknown): boolean {
  if (value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isMap(value) && Object.keys(value).length > 0 && Object.values(value).every(isUnrecorded);
}

/** Fields that the server omits when it writes an object. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === "" || value === false || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isMap(value) && Object.values(value).every(isNothing);
}

function isLeaf(fields: Fields): boolean {
  return Object.keys(fields).every((key) => key === ".");
}

export function isMap(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
