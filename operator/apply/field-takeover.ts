import { fieldManager } from "../../config/contract/names.ts";
import type { ApiError } from "../cluster/api-error.ts";
import { applyConfigurationOf } from "../cluster/apply-configuration.ts";
import type { KubernetesObject, ManagedFieldsEntry } from "../facts/kubernetes-object.ts";
import { type Fields, hasKeys, isMap, type JsonObject, mayHaveKeys } from "./owned-fields.ts";

/** A field or list item that another field manager owns and that the apply does not contain. */
interface Foreign {
  /** Path without list indexes, such as `spec.template.spec.containers.env`. */
  readonly path: string;
  /** Present if the field is an item of a list. */
  readonly item?: {
    readonly desired: readonly JsonObject[];
    readonly live: readonly JsonObject[];
    readonly keys: JsonObject;
  };
}

type Rule = (foreign: Foreign) => boolean;

/**
 * Returns `managedFields` in which the operator owns the foreign fields that match `rule`, or `undefined` if
 * no field matches. The next apply does not contain these fields, and therefore removes them (Kubernetes,
 * "Server-Side Apply", field management). Otherwise server-side apply would keep conflicting fields: for
 * example, a port with another number would keep the port name that the operator needs.
 */
function adopt(
  live: KubernetesObject,
  desired: KubernetesObject,
  rule: Rule,
): ManagedFieldsEntry[] | undefined {
  const entries = structuredClone(live.metadata.managedFields ?? []);
  const isOurs = ({ manager, operation, subresource }: ManagedFieldsEntry) =>
    manager === fieldManager && operation === "Apply" && (subresource ?? "") === "";
  const own = entries.find(isOurs) ?? {
    manager: fieldManager,
    operation: "Apply",
    apiVersion: desired.apiVersion,
    fieldsType: "FieldsV1",
    fieldsV1: {},
  };
  const others = entries.filter((entry) => entry !== own && (entry.subresource ?? "") === "");
  const intent = applyConfigurationOf(desired);
  let moved = 0;
  for (const { apiVersion, fieldsV1 } of others) {
    if (apiVersion !== own.apiVersion || fieldsV1 === undefined) continue;
    moved += moveMap({ source: fieldsV1 as Fields, target: own.fieldsV1 as Fields, rule }, intent, live, "");
  }
  if (moved === 0) return undefined;
  return entries.includes(own) ? entries : [...entries, own];
}

interface Move {
  readonly source: Fields;
  readonly target: Fields;
  readonly rule: Rule;
}

function moveMap(move: Move, desired: JsonObject, live: JsonObject, path: string): number {
  let moved = 0;
  for (const [key, fields] of Object.entries(move.source)) {
    if (!key.startsWith("f:")) continue;
    const name = key.slice(2);
    const fieldPath = path === "" ? name : `${path}.${name}`;
    if (desired[name] !== undefined)
      moved += moveWithin(move, key, fields, { desired: desired[name], live: live[name], path: fieldPath });
    else if (move.rule({ path: fieldPath })) moved += moveField(move, key);
  }
  return moved;
}

function moveWithin(
  { source: _, target, rule }: Move,
  key: string,
  source: Fields,
  { desired, live, path }: { desired: unknown; live: unknown; path: string },
): number {
  const own = target[key] ?? {};
  const move = { source, target: own, rule };
  let moved = 0;
  if (isMap(desired)) moved = moveMap(move, desired, isMap(live) ? live : {}, path);
  else if (Array.isArray(desired) && Array.isArray(live))
    moved = moveItems(move, desired.filter(isMap), live.filter(isMap), path);
  if (moved > 0) target[key] = own;
  return moved;
}

function moveItems(
  move: Move,
  desired: readonly JsonObject[],
  live: readonly JsonObject[],
  path: string,
): number {
  let moved = 0;
  for (const [key, fields] of Object.entries(move.source)) {
    if (!key.startsWith("k:")) continue;
    const keys = JSON.parse(key.slice(2)) as JsonObject;
    const named = desired.find((item) => mayHaveKeys(item, keys));
    if (named !== undefined) {
      const liveItem = live.find((item) => hasKeys(item, keys));
      moved += moveWithin(move, key, fields, { desired: named, live: liveItem, path });
    } else if (move.rule({ path, item: { desired, live, keys } })) moved += moveField(move, key);
  }
  return moved;
}

function moveField({ source, target }: Move, key: string): number {
  target[key] = source[key] ?? {};
  delete source[key];
  return 1;
}

/**
 * Takes over items of the operator whose key another client changed, such as the number of a port or the name
 * of a container. The operator recognizes the item by its other fields: each of them is absent, or equals the
 * field of a desired item that the live list does not contain.
 */
export function takeOverRenamed(
  live: KubernetesObject,
  desired: KubernetesObject,
): ManagedFieldsEntry[] | undefined {
  return adopt(live, desired, ({ item }) => item !== undefined && isRenamed(item));
}

function isRenamed({ desired, live, keys }: NonNullable<Foreign["item"]>): boolean {
  const liveItem = live.find((item) => hasKeys(item, keys));
  if (liveItem === undefined) return false;
  return desired
    .filter((item) => !live.some((candidate) => isSameItem(item, candidate, keys)))
    .some((item) => {
      const rest = Object.entries(item).filter(([name]) => !(name in keys));
      return rest.length > 0 && rest.every(([name, value]) => contains(liveItem[name], value));
    });
}

function isSameItem(item: JsonObject, candidate: JsonObject, keys: JsonObject): boolean {
  return Object.keys(keys).every((name) => item[name] === undefined || item[name] === candidate[name]);
}

function contains(live: unknown, desired: unknown): boolean {
  if (Array.isArray(desired))
    return Array.isArray(live) && desired.every((item, index) => contains(live[index], item));
  if (isMap(desired))
    return isMap(live) && Object.entries(desired).every(([name, value]) => contains(live[name], value));
  return live === desired || live === undefined;
}

/** Takes over the foreign fields in the lists and maps whose fields the API server rejected. */
export function takeOverRejected(
  live: KubernetesObject,
  desired: KubernetesObject,
  { causes }: ApiError,
): ManagedFieldsEntry[] | undefined {
  const scopes = causes.flatMap(({ field }) => (field === undefined ? [] : scopeOf(field)));
  return adopt(live, desired, ({ path }) => scopes.some((scope) => `${path}.`.startsWith(`${scope}.`)));
}

/**
 * Returns the list or map that contains a rejected field: `spec.ports` for `spec.ports[1].name`. It returns
 * an empty list for the whole object and for the metadata.
 */
function scopeOf(field: string): string[] {
  const names = field.replaceAll(/\[[^\]]*\]/g, "").split(".");
  const isItem = field.endsWith("]");
  const scope = names.length === 1 || isItem ? names : names.slice(0, -1);
  return scope[0] === "metadata" || scope[0] === "" ? [] : [scope.join(".")];
}
