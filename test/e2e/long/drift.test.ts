/**
 * Changes every child of two running `TtsDeployment`s with `kubectl patch`, one change after the other. The
 * operator restores each child, and the test prints the times. test/integration/operator/drift.test.ts makes
 * the same kinds of changes. SEED selects the changes of a run.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import { rulesOf } from "../../../operator/cluster/permissions.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import { additionsTo, appliedPart, type ChildChange, changesOf } from "../../support/child-changes.ts";
import { readObject, tryPatch, watchObjects } from "../../support/cluster/api-reader.ts";
import type { KubeObject } from "../../support/cluster/real-cluster.ts";
import { licenseSecret, mist, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";
import { foreignCrdFiles } from "../../support/judges/foreign-kinds.ts";
import { seededRandom } from "../../support/seed.ts";

/** The kind and name of a child. */
interface Child {
  readonly kind: string;
  readonly name: string;
}

interface Repair extends Child {
  readonly change: string;
  /** The time between the events of a watch that show the changed and the repaired object. */
  readonly tookMs: number;
}

const changesPerChild = 12;
const additionsPerKind = 4;
const slowMs = 1_000;
const world = new World(inject("cluster"), "drift");
const { kubectl, namespace } = world;
const hostnames = ["a.example.com", "b.example.com"];
const random = seededRandom("drift");

/**
 * The operator writes these objects once. Only the size of a claim can be changed later, and no field of a
 * Job or of a revision.
 */
const writtenOnce = ["events", "controllerrevisions", "jobs", "persistentvolumeclaims"];
/** The plurals of the kinds that the operator creates and repairs. */
const kinds = rulesOf("workload")
  .filter(({ verbs }) => verbs.includes("create"))
  .flatMap(({ resources }) => resources)
  .filter((resource) => !writtenOnce.includes(resource));

const drain = { endpointDelaySeconds: 3, maxStreamSeconds: 60 };
const { replicas: _, ...scaledMist } = mist() as { replicas: number };
const first = {
  api: { replicas: 1, drain, route: { hostnames, ingress: { tlsSecretName: "tls" } } },
  networkPolicy: { enabled: true },
  models: [{ ...scaledMist, scaling: { provider: "HPA", minReplicas: 1, maxReplicas: 2 } }],
};
/** The pool is scaled to zero, so no vLLM pod starts. */
const second = {
  license: { secretRef: { name: licenseSecret } },
  api: { replicas: 1, drain, route: { hostnames, gatewayRef: { name: "public", sectionName: "https" } } },
  telemetry: { serviceMonitor: { enabled: true } },
  models: [
    {
      name: "arcana",
      kind: "arcana",
      engine: { type: "vllm" },
      accelerator: { count: 1 },
      scaling: { provider: "KEDA", minReplicas: 0, maxReplicas: 2 },
    },
  ],
};

/**
 * Every state of every child, by kind and name, with the time at which a watch reported it. The times are
 * real and only printed: no assertion depends on them.
 */
const states = new Map<string, { readonly text: string; readonly atMs: number }[]>();
const watches: { readonly stop: () => Promise<void> }[] = [];
let crds: string[] = [];
let children: Child[] = [];

beforeAll(async () => {
  const products = ["gatewayApi", "keda", "prometheusOperator"] as const;
  crds = (await Promise.all(products.map(foreignCrdFiles))).flat().flatMap((file) => ["-f", file]);
  await kubectl.do("apply", "--server-side", ...crds);
  await world.openWith("first", first);
  await kubectl.apply({
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsDeployment",
    metadata: { name: "second" },
    spec: second,
  });
  await eventually("every kind of child", async () => (await existingKinds()).length === kinds.length, {
    seen: existingKinds,
    // The operator detects kinds that were installed after its start only at intervals.
    limitMs: 600_000,
  });
  await world.condition("second", "ApiReady", "True");
  for (const kind of kinds)
    watches.push(
      await watchObjects(kind, namespace, (object) => {
        const key = keyOf({ kind: object.kind, name: object.metadata.name });
        const known = states.get(key) ?? [];
        states.set(key, [...known, { text: textOf(object), atMs: performance.now() }]);
      }),
    );
  children = (await listChildren()).map(({ kind, metadata: { name } }) => ({ kind, name }));
});

afterAll(async () => {
  for (const watch of watches) await watch.stop();
  await world.close();
  await kubectl.do("delete", "--ignore-not-found", "--timeout=300s", ...crds);
});

const keyOf = ({ kind, name }: Child) => `${kind} ${name}`;

function listChildren(): Promise<KubeObject[]> {
  return kubectl.list(kinds.join(","), `${labels.deployment} in (first,second)`);
}

async function existingKinds(): Promise<string[]> {
  return [...new Set((await listChildren()).map(({ kind }) => kind))];
}

/**
 * Returns the object as text, without its history, its status and the revision of the Deployment controller.
 */
function textOf(object: KubeObject): string {
  const { status: _status, metadata, ...rest } = object as KubernetesObject;
  const { managedFields, resourceVersion, generation, creationTimestamp, annotations, ...kept } = metadata;
  const { "deployment.kubernetes.io/revision": _revision, ...notes } = annotations ?? {};
  return JSON.stringify({ ...rest, metadata: { ...kept, annotations: notes } });
}

async function read({ kind, name }: Child): Promise<KubeObject> {
  const object = await readObject(kind.toLowerCase(), namespace, name);
  if (object === undefined) throw new Error(`${kind} ${namespace}/${name} does not exist`);
  return object;
}

async function partOf(child: Child) {
  return appliedPart((await read(child)) as KubernetesObject);
}

/** Returns the first alternative that the API server accepts and that changes the object. */
async function acceptedOf(child: Child, { alternatives }: ChildChange): Promise<string | undefined> {
  const before = textOf(await read(child));
  for (const operations of alternatives) {
    const after = await tryPatch(child.kind.toLowerCase(), namespace, child.name, operations);
    if (after !== undefined && textOf(after) !== before) return JSON.stringify(operations);
  }
  return undefined;
}

function patch({ kind, name }: Child, operations: string): Promise<string> {
  return kubectl.do("patch", kind.toLowerCase(), name, "--type=json", "-p", operations);
}

/**
 * Waits until the child has changed and is restored. @param isOriginal whether a state of the child is the
 * original state @param earlierStates the number of states that were recorded before the change @returns the
 * time in milliseconds between the two events
 */
async function roundTrip(
  child: Child,
  what: string,
  isOriginal: (text: string) => boolean,
  earlierStates: number,
) {
  return eventually(`${keyOf(child)} to be repaired: ${what}`, () => {
    const later = (states.get(keyOf(child)) ?? []).slice(earlierStates);
    const changed = later.findIndex(({ text }) => !isOriginal(text));
    const repaired = later.slice(changed + 1).find(({ text }) => isOriginal(text));
    const since = later[changed];
    return since && repaired && { tookMs: repaired.atMs - since.atMs };
  });
}

/**
 * Makes the change and waits for the repair. Returns undefined if the API server accepts no form of the
 * change.
 */
async function repaired(child: Child, change: ChildChange): Promise<Repair | undefined> {
  const operations = await acceptedOf(child, change);
  if (operations === undefined) return undefined;
  const before = textOf(await read(child));
  const earlierStates = states.get(keyOf(child))?.length ?? 0;
  await patch(child, operations);
  const { tookMs } = await roundTrip(child, change.name, (text) => text === before, earlierStates);
  return { ...child, change: change.name, tookMs };
}

/** Selects changes evenly over the object, starting at an index that the seed chooses. */
function someOf<T>(all: readonly T[], count: number): T[] {
  const stride = Math.max(1, all.length / count);
  const start = random.next() * stride;
  return Array.from(
    { length: Math.ceil((all.length - start) / stride) },
    (_, i) => all[Math.floor(start + i * stride)],
  )
    .filter((one) => one !== undefined)
    .slice(0, count);
}

function shuffled<T>(all: readonly T[]): T[] {
  return all
    .map((one) => ({ one, order: random.next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ one }) => one);
}

function tableOf(repairs: readonly Repair[]): string {
  const groups = [...Map.groupBy(repairs, ({ kind }) => kind), ["all", repairs] as const];
  const rows = groups.map(([kind, ofKind]) => {
    const times = ascending(ofKind.map(({ tookMs }) => tookMs));
    const figures = [quantile(times, 0.5), quantile(times, 0.95), times.at(-1) ?? 0];
    return [kind, String(times.length), ...figures.map((ms) => `${ms.toFixed(0)} ms`)];
  });
  const slow = repairs.filter(({ tookMs }) => tookMs > slowMs);
  return [
    "| child | changes | p50 | p95 | max |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map((cells) => `| ${cells.join(" | ")} |`),
    `longer than ${slowMs} ms: ${slow.length}`,
    ...slow.map(({ kind, name, change, tookMs }) => `${kind} ${name} ${change}: ${tookMs.toFixed(0)} ms`),
  ].join("\n");
}

describe("a change of a child with kubectl patch", () => {
  it("is reverted by the operator in every field", async () => {
    const repairs: Repair[] = [];
    try {
      for (const child of children) repairs.push(...(await repairsOf(child)));
    } finally {
      console.info(tableOf(repairs));
    }
    expect(repairs.length).toBeGreaterThanOrEqual(100);
    expect(new Set(repairs.map(keyOf))).toEqual(new Set(children.map(keyOf)));
  });

  it("persists if it adds an entry that the operator does not own", async () => {
    const ruled: string[] = [];
    for (const [, [child]] of Map.groupBy(children, ({ kind }) => kind))
      if (child !== undefined) ruled.push(...(await rulesFor(child)));
    console.info(`entries that kubectl patch added:\n${ruled.join("\n")}`);
    expect(ruled.filter((line) => line.endsWith("left alone")).length).toBeGreaterThan(0);
  });

  it("makes the object foreign if it removes the owner reference, and condition Ready reports the object", async () => {
    const child = { kind: "ConfigMap", name: "first-routing" };
    const { ownerReferences } = ((await read(child)) as KubernetesObject).metadata;
    await patch(child, JSON.stringify([{ op: "remove", path: "/metadata/ownerReferences" }]));
    await world.condition("first", "Ready", "False", /first-routing was not created by this operator/);
    const back = [{ op: "add", path: "/metadata/ownerReferences", value: ownerReferences }];
    await patch(child, JSON.stringify(back));
    await world.condition("first", "Ready", "True");
  });
});

/**
 * Whether the change affects the date of a token. The operator reads the date from the Secret, so it has no
 * other value to restore.
 */
const isTokenDate = ({ kind }: Child, { name }: ChildChange) =>
  kind === "Secret" && name.startsWith("/metadata/annotations");

async function repairsOf(child: Child): Promise<Repair[]> {
  const repairs: Repair[] = [];
  const changes = changesOf(await partOf(child)).filter((change) => !isTokenDate(child, change));
  for (const change of someOf(changes, changesPerChild)) {
    const repair = await repaired(child, change);
    if (repair !== undefined) repairs.push(repair);
  }
  return repairs;
}

async function rulesFor(child: Child): Promise<string[]> {
  const ruled: string[] = [];
  for (const addition of shuffled(additionsTo(await partOf(child)))) {
    if (ruled.length === additionsPerKind) break;
    const rule = await ruleFor(child, addition);
    if (rule !== undefined) ruled.push(`${child.kind} ${addition.field}: ${rule}`);
  }
  return ruled;
}

/** Returns whether the operator removes an added entry when it repairs another change of the same child. */
async function ruleFor(child: Child, addition: ChildChange): Promise<"left alone" | "removed" | undefined> {
  const operations = await acceptedOf(child, addition);
  if (operations === undefined) return undefined;
  const before = textOf(await read(child));
  await patch(child, operations);
  const partOfLabel = `/metadata/labels/${labels.partOf.replace("/", "~1")}`;
  const earlierStates = states.get(keyOf(child))?.length ?? 0;
  await patch(child, JSON.stringify([{ op: "replace", path: partOfLabel, value: "theirs" }]));
  const isOurs = (text: string) =>
    (JSON.parse(text) as KubernetesObject).metadata.labels?.[labels.partOf] === "svc-tts";
  await roundTrip(child, addition.name, isOurs, earlierStates);
  return textOf(await read(child)) === before ? "removed" : "left alone";
}
