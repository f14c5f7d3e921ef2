/**
 * Generates changes that another client may make to an object that the operator applied, as JSON Patch (RFC
 * 6902).
 */
import { isDeepStrictEqual } from "node:util";
import { fieldManager } from "../../config/contract/names.ts";
import { type Fields, hasKeys, isMap, type JsonObject } from "../../operator/apply/owned-fields.ts";
import type { KubernetesObject } from "../../operator/facts/kubernetes-object.ts";

export interface PatchOperation {
  readonly op: "add" | "remove" | "replace";
  /** A JSON Pointer (RFC 6901). */
  readonly path: string;
  readonly value?: unknown;
}

export interface ChildChange {
  /** A description such as `/spec/ports/0/port changed`. */
  readonly name: string;
  /** Alternative patches with other values, because the API server may reject some values. */
  readonly alternatives: readonly (readonly PatchOperation[])[];
}

export interface ChildAddition extends ChildChange {
  /** The path of the list or map that gets another entry, without positions: `spec.ports`. */
  readonly field: string;
}

type Place = readonly (string | number)[];

/**
 * Returns whether a field identifies the owner of an object. Tests do not change such fields, because the
 * operator never changes an object that it does not own.
 */
const isOwnership = (path: string) =>
  path.startsWith("/metadata/ownerReferences") && !path.endsWith("/blockOwnerDeletion");

/**
 * Returns the fields of `live` that the operator applied. List items of other field owners become undefined,
 * so that the positions in both objects are equal.
 */
export function appliedPart(live: KubernetesObject): JsonObject {
  const entry = live.metadata.managedFields?.find(
    ({ manager, operation, subresource }) =>
      manager === fieldManager && operation === "Apply" && (subresource ?? "") === "",
  );
  if (entry?.fieldsV1 === undefined)
    throw new Error(`the operator never applied ${live.kind} ${live.metadata.name}`);
  return partOf(entry.fieldsV1 as Fields, live) as JsonObject;
}

function partOf(fields: Fields, live: unknown): unknown {
  const keys = Object.keys(fields).filter((key) => key !== ".");
  if (keys.length === 0) return live;
  if (Array.isArray(live)) return live.map((item) => partOfItem(fields, keys, item));
  const named = keys.filter((key) => key.startsWith("f:")).map((key) => [key, key.slice(2)] as const);
  return Object.fromEntries(
    named
      .filter(([, name]) => isMap(live) && live[name] !== undefined)
      .map(([key, name]) => [name, partOf(fields[key] ?? {}, (live as JsonObject)[name])]),
  );
}

/** Returns the applied part of a list item, or undefined if the item has another field owner. */
function partOfItem(fields: Fields, keys: readonly string[], item: unknown): unknown {
  const key = keys.find((one) =>
    one.startsWith("k:") && isMap(item)
      ? hasKeys(item, JSON.parse(one.slice(2)) as JsonObject)
      : one === `v:${JSON.stringify(item)}`,
  );
  return key === undefined ? undefined : partOf(fields[key] ?? {}, item);
}

/**
 * Returns changes that replace or remove each value, map key and list item of `part`. If several items of a
 * list have the same field, a further change affects this field of all items.
 */
export function changesOf(part: JsonObject): ChildChange[] {
  const places = [...placesOf(part)].filter((place) => !isOwnership(pointerTo(place)));
  const shapes = Object.values(Object.groupBy(places, listedShapeOf)).filter((shape) => shape !== undefined);
  const together = shapes.filter(({ length }) => length > 1);
  return [...places.map((place) => [place]), ...together].flatMap((group) => changesAt(part, group));
}

/** Returns changes that add one entry to each list and each map of `part`. */
export function additionsTo(part: JsonObject): ChildAddition[] {
  const open = [...placesOf(part)].filter((place) => {
    const value = valueAt(part, place);
    return !isOwnership(pointerTo(place)) && (Array.isArray(value) || isMap(value));
  });
  return open.flatMap((place) => additionAt(part, place));
}

/** Returns a changed copy of the object. */
export function patched(object: KubernetesObject, operations: readonly PatchOperation[]): KubernetesObject {
  const copy = structuredClone(object);
  for (const { op, path, value } of operations) {
    const names = path.split("/").slice(1).map(unescaped);
    const last = names.pop() ?? "";
    const parent = names.reduce<unknown>((inner, name) => (inner as JsonObject)[name], copy);
    if (Array.isArray(parent)) changeList(parent, { op, last, value });
    else if (op === "remove") delete (parent as JsonObject)[last];
    else (parent as JsonObject)[last] = value;
  }
  return copy;
}

function changeList(
  list: unknown[],
  { op, last, value }: Pick<PatchOperation, "op" | "value"> & { last: string },
) {
  if (last === "-") list.push(value);
  else list.splice(Number(last), op === "add" ? 0 : 1, ...(op === "remove" ? [] : [value]));
}

/** Returns the paths of all values. The path of an object or list comes before the paths of its content. */
function* placesOf(value: unknown, place: Place = []): Generator<Place> {
  if (value === undefined || value === null) return;
  // The fields of metadata are changed one at a time, because the whole metadata cannot be replaced.
  if (place.length > 0 && pointerTo(place) !== "/metadata") yield place;
  if (typeof value !== "object") return;
  for (const [name, inner] of Object.entries(value))
    yield* placesOf(inner, [...place, Array.isArray(value) ? Number(name) : name]);
}

function changesAt(part: JsonObject, places: readonly Place[]): ChildChange[] {
  const [first = []] = places;
  const name = places.length === 1 ? pointerTo(first) : `every ${listedShapeOf(first)}`;
  const others = places.map((place) => [...otherValues(valueAt(part, place)), ...valuesBeside(part, place)]);
  const count = Math.max(...others.map(({ length }) => length));
  const changed = Array.from({ length: count }, (_, i) =>
    places.map((place, at): PatchOperation => {
      const values = others[at] ?? [];
      return { op: "replace", path: pointerTo(place), value: values[i] ?? values.at(-1) };
    }),
  );
  // The removals are in reverse order, so that a removal does not change the positions of the later removals.
  const removed = places
    .toReversed()
    .map((place): PatchOperation => ({ op: "remove", path: pointerTo(place) }));
  return [
    ...(count === 0 ? [] : [{ name: `${name} changed`, alternatives: changed }]),
    { name: `${name} removed`, alternatives: [removed] },
  ];
}

/**
 * Values for fields that do not accept every text: values of enumerations, and valid forms of other strings.
 */
const words =
  "2 2s 10.0.0.2 10.0.2.0/24 10% YQ== v1 metadata.uid https://10.0.0.2 grpc http/protobuf Always Exact Equal NotIn NoExecute UDP Recreate NodePort Egress Pods Min Value Unconfined HTTPS Wait External DoNotSchedule none mini".split(
    " ",
  );

/** Returns several other values, because a field may reject some of them. Objects and lists have none. */
function otherValues(value: unknown): unknown[] {
  if (typeof value === "number") return [value + 1, value - 1, value * 2];
  if (typeof value === "boolean") return [!value];
  if (typeof value !== "string") return [];
  return [`${value}x`, ...words.filter((word) => word !== value)];
}

/**
 * Returns the values of the same field in the other items of a list. For a reference, such as the name of a
 * volume, the API server accepts only these values.
 */
function valuesBeside(part: JsonObject, place: Place): unknown[] {
  const [index, field] = place.slice(-2);
  if (typeof index !== "number" || typeof field !== "string") return [];
  const own = valueAt(part, place);
  const items = valueAt(part, place.slice(0, -2)) as unknown[];
  const otherItemValues = items.filter(isMap).map((item) => item[field]);
  return typeof own === "string"
    ? otherItemValues.filter((value) => typeof value === "string" && value !== own)
    : [];
}

function additionAt(part: JsonObject, place: Place): ChildAddition[] {
  const value = valueAt(part, place);
  const path = pointerTo(place);
  const entries = Array.isArray(value)
    ? otherItems(value).map((item): PatchOperation => ({ op: "add", path: `${path}/-`, value: item }))
    : otherEntries.map(
        ([name, text]): PatchOperation => ({
          op: "add",
          path: `${path}/${escaped(name)}`,
          value: text,
        }),
      );
  if (entries.length === 0) return [];
  return [{ name: `${path} extended`, field: shapeOf(place), alternatives: entries.map((entry) => [entry]) }];
}

/**
 * Entries to add to labels, ConfigMaps and Secrets. The API server rejects them for objects that are not
 * maps.
 */
const otherEntries = [
  ["example.com/theirs", "1"],
  ["theirs", "YQ=="],
] as const;

/** Returns copies of the last item of a list with other values. */
function otherItems(list: readonly unknown[]): unknown[] {
  const last = list.findLast((item) => item !== undefined);
  if (!isMap(last)) return otherValues(last);
  const scalars = Object.entries(last).filter(([, value]) => otherValues(value).length > 0);
  const changed = (names: readonly string[], choice: number) => ({
    ...structuredClone(last),
    ...Object.fromEntries(
      scalars
        .filter(([name]) => names.includes(name))
        .map(([name, value]) => [name, otherValues(value)[choice]]),
    ),
  });
  const numbers = scalars.filter(([, value]) => typeof value === "number").map(([name]) => name);
  const each = scalars.flatMap(([name, value]) =>
    otherValues(value).map((_, choice) => changed([name], choice)),
  );
  const others = [changed(["name", ...numbers], 0), ...each];
  return [...others.filter((item) => !isDeepStrictEqual(item, last)), structuredClone(last)];
}

function valueAt(object: unknown, place: Place): unknown {
  return place.reduce<unknown>((inner, name) => (inner as JsonObject)[name], object);
}

/** Returns a path without positions, such as `spec.ports.name`. */
function shapeOf(place: Place): string {
  return place.filter((part) => typeof part === "string").join(".");
}

/** Returns a path with `[]` for each position, such as `spec.ports.[].name`. */
function listedShapeOf(place: Place): string {
  return place.map((part) => (typeof part === "string" ? part : "[]")).join(".");
}

function pointerTo(place: Place): string {
  return place.map((part) => `/${escaped(String(part))}`).join("");
}

const escaped = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");
const unescaped = (name: string) => name.replaceAll("~1", "/").replaceAll("~0", "~");
