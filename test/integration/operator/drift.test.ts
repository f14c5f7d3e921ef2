/**
 * Every value, map key and list item that the operator applies, changed and removed one by one on a real API server, in every kind of child:
 * one call of the applier makes the whole object as it was.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import { Applier } from "../../../operator/cluster/applier.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { intentOf } from "../../../operator/cluster/intent.ts";
import { deploymentChildren, poolChildren } from "../../../operator/desired/children.ts";
import type { Manifest } from "../../../operator/manifest.ts";
import type { TtsDeployment, TtsModelPool } from "../../../operator/observed.ts";
import { adminClient, freshNamespace } from "../../support/cluster-namespace.ts";
import { eventually } from "../../support/eventually.ts";
import { kubectlOrThrow } from "../../support/kubectl.ts";
import { granted, granting, now, observed, serverSettings, ttsDeployment } from "../../support/observed.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

type Json = Record<string, unknown>;
type Edit = (object: Manifest) => void;

const spec = {
  api: {
    keys: { secretRef: { name: "keys" } },
    route: { hostnames: ["a.example.com", "b.example.com"], ingress: { tlsSecretName: "tls" } },
    podTemplate: { spec: { hostAliases: [{ ip: "10.0.0.1", hostnames: ["registry"] }] } },
  },
  networkPolicy: { enabled: true, apiServer: { cidrs: ["10.0.0.0/24"] } },
};
const models = [
  {
    name: "mist",
    kind: "mist",
    scaling: { provider: "HPA", minReplicas: 1, maxReplicas: 3 },
    env: [{ name: "MORE", value: "1" }],
    podTemplate: {
      spec: {
        tolerations: [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }],
        containers: [{ name: "sidecar", image: "sidecar:1", ports: [{ containerPort: 9000, name: "side" }] }],
      },
    },
  },
];

let client: ClusterClient;
let applier: Applier;
let children: readonly Manifest[];

beforeAll(async () => {
  client = await adminClient(inject("controlPlane"));
  applier = new Applier(client);
  const namespace = await freshNamespace(client, "drift");
  const { metadata, ...rest } = ttsDeployment(spec, models);
  const owner = await client.create({ ...rest, metadata: { name: metadata.name, namespace } });
  const deployment = owner as TtsDeployment;
  const rendered = deploymentChildren(observed(deployment), granting("mist"), serverSettings).children;
  const wanted = rendered.find(({ kind }) => kind === "TtsModelPool") as Manifest;
  const pool = (await client.apply(wanted)) as TtsModelPool;
  const facts = { grant: granted, now, canary: undefined, routed: false, figures: undefined };
  const workload = { deployment: undefined, pods: [] };
  const ofPool = poolChildren({ ...facts, observed: { pool, workload } }, serverSettings).children;
  children = [...rendered, ...ofPool];
});

afterAll(() => client.close());

function child(kind: string, name: string): Manifest {
  const found = children.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** What the API server keeps of an object apart from its history. */
function contentOf({ status: _, metadata, ...rest }: Manifest): Json {
  const { managedFields, resourceVersion, generation, creationTimestamp, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

/** As `kubectl edit` would. Undefined where the API server refuses the change, or where it changes nothing. */
async function edited(live: Manifest, edit: Edit): Promise<Manifest | undefined> {
  const changed = structuredClone(live);
  edit(changed);
  try {
    const after = await client.replace(changed);
    return after.metadata.resourceVersion === live.metadata.resourceVersion ? undefined : after;
  } catch (error) {
    if (error instanceof ApiError && [400, 403, 422].includes(error.status)) return undefined;
    throw error;
  }
}

type Place = readonly (string | number)[];

/** Every place of what we apply; objects and lists before what is in them. */
function* placesOf(value: unknown, path: Place = []): Generator<Place> {
  if (path.length > 0) yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value))
    yield* placesOf(inner, [...path, Array.isArray(value) ? Number(name) : name]);
}

function parentOf(object: unknown, path: Place): Json {
  return path.slice(0, -1).reduce<unknown>((inner, name) => (inner as Json)[name], object) as Json;
}

/** The same change at places that differ only by their list item. */
function editsAt(desired: Manifest, places: readonly Place[]): [string, Edit][] {
  const [first = []] = places;
  const last = first.at(-1) ?? "";
  const value = parentOf(desired, first)[last];
  const name = `${first.filter((part) => typeof part === "string").join(".")}${typeof last === "number" ? "[]" : ""}`;
  const each =
    (change: (parent: Json, key: string | number) => void): Edit =>
    (object) => {
      // from the end, so that an item that is removed moves none that is still to come
      for (const path of places.toReversed()) change(parentOf(object, path), path.at(-1) ?? "");
    };
  const changes = changesOf(value).map((next): [string, Edit] => [
    `${name} changed`,
    each((parent, key) =>
      Object.assign(parent, { [key]: typeof next === "function" ? next(parent[key]) : next }),
    ),
  ]);
  const remove = each((parent, key) => {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  });
  return [...changes, [`${name} removed`, remove]];
}

function changesOf(value: unknown): unknown[] {
  if (typeof value === "number") return [(number: number) => number + 1];
  if (typeof value === "boolean") return [!value];
  return typeof value === "string" ? [(text: string) => `${text}x`, "10.0.0.2", "Always"] : [];
}

function groupsOf(desired: Manifest): Place[][] {
  const places = [...placesOf(desired)].filter((path) => path.length > 1 || path[0] !== "metadata");
  return Object.values(
    Object.groupBy(places, (path) => path.map((part) => (typeof part === "number" ? "[]" : part)).join(".")),
  ).filter((group) => group !== undefined);
}

/** All but what names an object and tells whose it is. */
function bodyOf(desired: Manifest): Manifest {
  const { apiVersion: _, kind: __, metadata, ...body } = intentOf(desired);
  const { labels, annotations } = metadata;
  return {
    ...body,
    metadata: { ...(labels && { labels }), ...(annotations && { annotations }) },
  } as Manifest;
}

/** The changes that were made, and those that the applier did not repair. */
async function disturb(desired: Manifest, live: Manifest) {
  const whole = JSON.stringify(contentOf(live));
  const made = new Set<string>();
  const left: string[] = [];
  const body = bodyOf(desired);
  let current = live;
  for (const [name, edit] of groupsOf(body).flatMap((group) => editsAt(body, group))) {
    const changed = made.has(name) ? undefined : await edited(current, edit);
    if (changed === undefined) continue;
    made.add(name);
    const repaired = await applier.ensure(changed, desired).catch((error: unknown) => String(error));
    if (typeof repaired !== "string" && JSON.stringify(contentOf(repaired.manifest)) === whole) {
      current = repaired.manifest;
      continue;
    }
    left.push(`${name}: ${typeof repaired === "string" ? repaired : "differs"}`);
    current = await restored(live);
  }
  return { made: [...made], left };
}

async function restored(before: Manifest): Promise<Manifest> {
  const { apiVersion, kind, metadata } = before;
  const { namespace = "", name } = metadata;
  const now = await client.get({ apiVersion, kind, namespace, name });
  const { resourceVersion = "" } = now?.metadata ?? {};
  return client.replace({ ...before, metadata: { ...metadata, resourceVersion } });
}

it.concurrent.each([
  ["ServiceAccount", "demo-api"],
  ["ServiceAccount", "demo-model"],
  ["Role", "demo-api"],
  ["RoleBinding", "demo-api"],
  ["ConfigMap", "demo-routing"],
  ["Service", "demo-api"],
  ["Ingress", "demo-api"],
  ["NetworkPolicy", "demo-api"],
  ["NetworkPolicy", "demo-model"],
  ["PodDisruptionBudget", "demo-api"],
  ["TtsModelPool", "demo-mist"],
  ["Deployment", "demo-api"],
  ["Service", "demo-mist"],
  ["PodDisruptionBudget", "demo-mist"],
  ["Deployment", "demo-mist"],
  ["HorizontalPodAutoscaler", "demo-mist"],
])("each field of %s %s is repaired, whatever it was changed to", async (kind, name) => {
  const desired = child(kind, name);
  const { made, left } = await disturb(desired, await client.apply(desired));
  expect(left).toEqual([]);
  expect(made.length).toBeGreaterThan(5);
});

it("no kind of child is left out", () => {
  const kinds = new Set(children.map(({ kind }) => kind));
  expect([...kinds].sort()).toEqual([
    "ConfigMap",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
    "TtsModelPool",
  ]);
});

describe("additions of others that stand in the way are removed:", () => {
  const main = ({ spec }: Manifest) =>
    (spec as { template: { spec: { containers: Json[]; volumes: Json[] } } }).template.spec;
  const named = (list: unknown, name: string) => (list as Json[]).find((item) => item.name === name) as Json;
  const mist = (object: Manifest) => named(main(object).containers, "mist");

  it.each<[string, string, string, Edit]>([
    [
      "a port that took the name of ours",
      "Service",
      "demo-api",
      ({ spec }) => Object.assign(((spec as Json).ports as Json[])[0] as Json, { port: 9000 }),
    ],
    [
      "another source for a variable",
      "Deployment",
      "demo-mist",
      (object) => {
        const variable = named(mist(object).env, "MORE");
        delete variable.value;
        variable.valueFrom = { fieldRef: { fieldPath: "metadata.name" } };
      },
    ],
    [
      "another type of a volume",
      "Deployment",
      "demo-mist",
      (object) => {
        const volume = named(main(object).volumes, "token");
        delete volume.secret;
        volume.emptyDir = {};
      },
    ],
    [
      "another handler of a probe",
      "Deployment",
      "demo-mist",
      (object) => {
        const probe = mist(object).livenessProbe as Json;
        delete probe.httpGet;
        probe.tcpSocket = { port: 1 };
      },
    ],
    [
      "another bound of a budget",
      "PodDisruptionBudget",
      "demo-mist",
      ({ spec }) => {
        const budget = spec as Json;
        delete budget.maxUnavailable;
        budget.minAvailable = 1;
      },
    ],
  ])("%s", async (_what, kind, name, edit) => {
    const desired = child(kind, name);
    const live = await client.apply(desired);
    const changed = await edited(live, edit);
    if (changed === undefined) throw new Error("the API server refused the change itself");
    const { manifest } = await applier.ensure(changed, desired);
    expect(contentOf(manifest)).toEqual(contentOf(live));
  });

  it("not those beside them", async () => {
    const desired = child("Deployment", "demo-mist");
    const changed = await edited(await client.apply(desired), (object) => {
      Object.assign(mist(object), { image: "theirs:1" });
      main(object).containers.push({ name: "mesh", image: "mesh:1" });
      (mist(object).ports as Json[]).push({ containerPort: 15_000, name: "mesh" });
      Object.assign(object.metadata, { annotations: { ...object.metadata.annotations, theirs: "1" } });
    });
    const { manifest } = await applier.ensure(changed, desired);
    expect(mist(manifest).image).toBe("server:1");
    expect(named(mist(manifest).ports, "mesh").containerPort).toBe(15_000);
    expect(named(main(manifest).containers, "mesh").image).toBe("mesh:1");
    expect(manifest.metadata.annotations).toMatchObject({ theirs: "1" });
    await client.remove({
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: manifest.metadata.namespace ?? "",
      name: "demo-mist",
    });
  });
});

it("the operator repairs a Service whose port and selector were changed, under the chart's own role", async () => {
  await using house = await OperatorHouse.open();
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment();
  const { spec } = await eventually("the Service", () => house.mustGet("Service", "demo-api"));
  await house.idle();
  const changed = [{ name: "http", port: 9000, targetPort: "http", protocol: "TCP" }];
  const patch = JSON.stringify({ spec: { ports: changed, selector: { theirs: "1" } } });
  const args = ["patch", "service", "-n", house.namespace, "demo-api", "--type=merge", "-p", patch];
  await kubectlOrThrow(inject("controlPlane"), args);
  await house.until(
    async () => JSON.stringify((await house.mustGet("Service", "demo-api")).spec) === JSON.stringify(spec),
    "the Service as it was",
  );
});
