/**
 * Changes and removes every value, map key and list item that the operator applies, one at a time, in every
 * kind of child on a real API server. One apply must restore the whole object. Entries that another client
 * adds stay or are removed as docs/reference/additions.md documents.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Applier } from "../../../operator/apply/applier.ts";
import { isApplied } from "../../../operator/apply/owned-fields.ts";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { rulesOf } from "../../../operator/cluster/permissions.ts";
import { resourceOf } from "../../../operator/cluster/resources.ts";
import { tokenSecret } from "../../../operator/desired/token-secret.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { TtsDeployment, TtsModelPool } from "../../../operator/facts/observed.ts";
import { deploymentChildren, poolChildren } from "../../../operator/reconcile/children.ts";
import {
  additionsTo,
  appliedPart,
  type ChildChange,
  changesOf,
  patched,
} from "../../support/child-changes.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds } from "../../support/cluster/kubectl.ts";
import { eventually } from "../../support/eventually.ts";
import { installForeignKinds } from "../../support/judges/foreign-kinds.ts";
import {
  granted,
  granting,
  now,
  observed,
  serverSettings,
  ttsDeployment,
} from "../../support/operator/observed.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";
import { turnOf } from "../../support/seed.ts";

type Json = Record<string, unknown>;
type Edit = (object: KubernetesObject) => void;

/** Together they have every kind of child, and pods with and without a GPU. */
const deployments = {
  demo: ttsDeployment(
    {
      api: {
        keys: { secretRef: { name: "keys" } },
        route: { hostnames: ["a.example.com", "b.example.com"], ingress: { tlsSecretName: "tls" } },
        podTemplate: { spec: { hostAliases: [{ ip: "10.0.0.1", hostnames: ["registry"] }] } },
      },
      imagePullSecrets: [{ name: "pull" }],
      availability: {
        topologySpread: [{ topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway" }],
      },
      networkPolicy: { enabled: true, apiServer: { cidrs: ["10.0.0.0/24"] } },
    },
    [
      {
        name: "mist",
        kind: "mist",
        scaling: { provider: "HPA", minReplicas: 1, maxReplicas: 3 },
        env: [{ name: "MORE", value: "1" }],
        podTemplate: {
          spec: {
            tolerations: [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }],
            containers: [
              { name: "sidecar", image: "sidecar:1", ports: [{ containerPort: 9000, name: "side" }] },
            ],
          },
        },
      },
    ],
  ),
  gate: ttsDeployment(
    {
      api: {
        route: {
          hostnames: ["a.example.com", "b.example.com"],
          gatewayRef: { name: "public", namespace: "infra", sectionName: "https" },
        },
      },
      telemetry: {
        serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
        collector: {
          enabled: true,
          exporter: { endpoint: "https://otlp.example.com:4317" },
          auth: { bearer: { secretRef: { name: "otlp" } } },
        },
      },
    },
    [
      {
        name: "arcana",
        kind: "arcana",
        engine: { type: "vllm" },
        accelerator: { count: 1 },
        scaling: { provider: "KEDA", minReplicas: 0, maxReplicas: 3 },
      },
    ],
  ),
};

const names: readonly (readonly [kind: string, name: string])[] = [
  ["Secret", "demo-token"],
  ["ServiceAccount", "demo-api"],
  ["ServiceAccount", "demo-model"],
  ["Role", "demo-api"],
  ["RoleBinding", "demo-api"],
  ["ConfigMap", "demo-routing"],
  ["Service", "demo-api"],
  ["Ingress", "demo-api"],
  ["HTTPRoute", "gate-api"],
  ["NetworkPolicy", "demo-api"],
  ["NetworkPolicy", "demo-model"],
  ["PodDisruptionBudget", "demo-api"],
  ["ServiceMonitor", "gate"],
  ["PodMonitor", "gate"],
  ["TtsModelPool", "demo-mist"],
  ["TtsModelPool", "gate-arcana"],
  ["Deployment", "demo-api"],
  ["Service", "demo-mist"],
  ["PodDisruptionBudget", "demo-mist"],
  ["Deployment", "demo-mist"],
  ["Deployment", "gate-arcana"],
  ["HorizontalPodAutoscaler", "demo-mist"],
  ["ScaledObject", "gate-arcana"],
];

let plane: ControlPlane;
let client: ClusterClient;
let applier: Applier;
let children: readonly KubernetesObject[];

const workloads = names.flatMap(([kind, name]) => (kind === "Deployment" ? [name] : []));
/**
 * The Deployment in which everything is changed in this run. The three Deployments consist of the same parts.
 */
const wholeWorkload = workloads[turnOf(workloads.length)] ?? "";
/** The paths of that Deployment. In the other two, only other paths are changed. */
let placesOfWhole: ReadonlySet<string>;

beforeAll(async () => {
  plane = await controlPlane({
    controllerManager: true,
    prepare: async (address) => {
      await installCrds(address);
      for (const product of ["gatewayApi", "keda", "prometheusOperator"] as const)
        await installForeignKinds(address, product);
    },
  });
  client = await adminClient(plane.address);
  applier = new Applier(client);
  const namespace = await freshNamespace(client, "drift");
  const made = Object.entries(deployments).map(([name, one]) => childrenOf(one, { name, namespace }));
  children = (await Promise.all(made)).flat();
  const whole = await client.apply(child("Deployment", wholeWorkload));
  placesOfWhole = new Set(changesOf(appliedPart(whole)).map(({ name }) => placeInAnyList(name)));
});

afterAll(async () => {
  client.close();
  await plane.stop();
});

/** Renders all children of a TtsDeployment for an existing owner. */
async function childrenOf(
  deployment: TtsDeployment,
  metadata: Pick<TtsDeployment["metadata"], "name" | "namespace">,
): Promise<KubernetesObject[]> {
  const owner = (await client.create({ ...deployment, metadata })) as TtsDeployment;
  const rendered = deploymentChildren(observed(owner), granting("mist", "arcana"), serverSettings).children;
  const internal = { token: "t0", accepted: ["t0", "t1"], changedAt: now, askedBy: "2026-01-01" };
  const ofPools = rendered.filter(({ kind }) => kind === "TtsModelPool").map(poolChildrenOf);
  return [tokenSecret(owner, internal), ...rendered, ...(await Promise.all(ofPools)).flat()];
}

async function poolChildrenOf(wanted: KubernetesObject): Promise<readonly KubernetesObject[]> {
  const pool = (await client.apply(wanted)) as TtsModelPool;
  const facts = { grant: granted, now, canary: undefined, routed: false, figures: undefined };
  const workload = { deployment: undefined, pods: [] };
  return poolChildren({ ...facts, observed: { pool, workload } }, serverSettings).children;
}

function child(kind: string, name: string): KubernetesObject {
  const found = children.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** The stored object without its history. */
function contentOf({ status: _, metadata, ...rest }: KubernetesObject): Json {
  const { managedFields, resourceVersion, generation, creationTimestamp, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

const textOf = (object: KubernetesObject) => JSON.stringify(contentOf(object));

/**
 * Changes the object like `kubectl edit`. Undefined if the API server rejects the change, or if it changes
 * nothing.
 */
async function written(
  live: KubernetesObject,
  changed: KubernetesObject,
): Promise<KubernetesObject | undefined> {
  try {
    const after = await client.replace(changed);
    return after.metadata.resourceVersion === live.metadata.resourceVersion ? undefined : after;
  } catch (error) {
    if (error instanceof ApiError && [400, 403, 422].includes(error.status)) return undefined;
    throw error;
  }
}

function edited(live: KubernetesObject, edit: Edit): Promise<KubernetesObject | undefined> {
  const changed = structuredClone(live);
  edit(changed);
  return written(live, changed);
}

/** Makes the first of the alternative changes that the API server accepts. */
async function changedBy(
  live: KubernetesObject,
  { alternatives }: ChildChange,
): Promise<KubernetesObject | undefined> {
  for (const operations of alternatives) {
    const changed = await written(live, patched(live, operations));
    if (changed !== undefined) return changed;
  }
  return undefined;
}

const placeInAnyList = (change: string) => change.replace(/\/\d+(?=[/ ])/g, "/*");

/**
 * The changes of one child. In two of the three Deployments, these are only the changes that the third one
 * does not have.
 */
function changesIn(live: KubernetesObject): readonly ChildChange[] {
  const changes = changesOf(appliedPart(live));
  if (live.kind !== "Deployment" || live.metadata.name === wholeWorkload) return changes;
  return changes.filter(({ name }) => !placesOfWhole.has(placeInAnyList(name)));
}

/**
 * The changes that were made, those that the API server rejected, and those that the applier did not repair.
 */
async function disturb(desired: KubernetesObject, live: KubernetesObject) {
  const whole = textOf(live);
  const [made, refused, left]: [string[], string[], string[]] = [[], [], []];
  let current = live;
  for (const change of changesIn(live)) {
    const changed = await changedBy(current, change);
    if (changed === undefined) {
      refused.push(change.name);
      continue;
    }
    made.push(change.name);
    const repaired = await repair(change, changed, desired).catch((error: unknown) => String(error));
    if (typeof repaired === "string") left.push(`${change.name}: ${repaired}`);
    const isWhole = typeof repaired !== "string" && textOf(repaired) === whole;
    current = isWhole ? repaired : await restored(live);
    if (!isWhole && !isKeyAlone.test(change.name)) left.push(`${change.name}: differs`);
  }
  return { made, refused, left };
}

/** An item that consists only of its key. With another key, it is an ordinary addition. */
const isKeyAlone = /\/imagePullSecrets\/\d+\/name /;

/** @throws Error if the operator would repair without end */
async function repair(
  { name }: ChildChange,
  changed: KubernetesObject,
  desired: KubernetesObject,
): Promise<KubernetesObject> {
  const { manifest } = await applier.ensure(changed, desired);
  if (!isApplied(manifest, desired)) throw new Error(`${name} is not repaired`);
  return manifest;
}

async function restored(before: KubernetesObject): Promise<KubernetesObject> {
  const { apiVersion, kind, metadata } = before;
  const { namespace = "", name } = metadata;
  const now = await client.get({ apiVersion, kind, namespace, name });
  const { resourceVersion = "" } = now?.metadata ?? {};
  return client.replace({ ...before, metadata: { ...metadata, resourceVersion } });
}

it.concurrent.each(names)(
  "each field of %s %s is repaired, whatever it was changed to",
  async (kind, name) => {
    const desired = child(kind, name);
    const live = await client.apply(desired);
    expect(isApplied(live, desired)).toBe(true);
    const { made, refused, left } = await disturb(desired, live);
    expect(left).toEqual([]);
    expect(untouched(made, refused).filter((place) => !locked[kind]?.test(place))).toEqual([]);
  },
);

/** Paths at which no value was changed or removed alone. */
function untouched(made: readonly string[], refused: readonly string[]): string[] {
  const placeOf = (name: string) => name.replace(/ \w+$/, "");
  const touched = made.map(placeOf);
  const single = refused.filter((name) => !name.startsWith("every ")).map(placeOf);
  return [...new Set(single)].filter(
    (place) => !touched.some((one) => one === place || one.startsWith(`${place}/`)),
  );
}

/** Fields that are immutable, or that can only change together with another field. */
const locked: Readonly<Record<string, RegExp>> = {
  Secret: /^\/type$/,
  RoleBinding: /^\/(roleRef|subjects\/0\/kind$)/,
  // the schema's defaults restore empty ones
  TtsModelPool:
    /^\/spec\/(deployment|kind|accelerator\/(nodeSelector|tolerations)|telemetry\/resourceAttributes)$/,
  HorizontalPodAutoscaler: /^\/spec\/metrics\/0\/type$/,
  Deployment: new RegExp(
    [
      // the selector matches the labels, and the strategy matches its numbers
      "^/spec/(selector|strategy/type$|template/metadata/labels/)",
      // volumes match their mounts
      "/volumes/\\d+/name$|/initContainers/0/volumeMounts/0/name$",
      // fields with only one possible value
      "/fieldRef(/apiVersion)?$|/initContainers/0/restartPolicy$",
    ].join("|"),
  ),
};

it("every kind of child is covered", () => {
  const made = rulesOf("workload").filter(({ verbs }) => verbs.includes("create"));
  const kinds = made.flatMap(({ resources }) => resources).filter((resource) => resource !== "events");
  const pluralsOf = (found: readonly string[]) => [...new Set(found.map((kind) => resourceOf(kind).plural))];
  expect(pluralsOf(children.map(({ kind }) => kind)).sort()).toEqual(kinds.sort());
  expect(pluralsOf(names.map(([kind]) => kind)).sort()).toEqual(kinds.sort());
});

type Rule = "left alone" | "removed";

/** Whether an entry that another client adds to a list or map of the child stays. */
async function additionRules(desired: KubernetesObject): Promise<Map<string, Rule>> {
  const live = await client.apply(desired);
  const whole = textOf(live);
  const rules = new Map<string, Rule>();
  for (const addition of additionsTo(appliedPart(live))) {
    const changed = await changedBy(await restored(live), addition);
    if (changed === undefined) continue;
    const { manifest } = await applier.ensure(changed, desired);
    // an addition that stays must also remain after an apply for another reason
    const rule = textOf(await client.apply(desired)) === whole ? "removed" : "left alone";
    if (rule === "left alone") expect(textOf(manifest)).toBe(textOf(changed));
    rules.set(addition.field, rules.get(addition.field) ?? rule);
  }
  await restored(live);
  return rules;
}

/**
 * The rows of the page: the kind, the fields whose additions stay, and the fields whose additions are
 * removed.
 */
async function documentedRules(): Promise<Map<string, Record<Rule, string[]>>> {
  const page = await readFile(join(import.meta.dirname, "../../../docs/reference/additions.md"), "utf8");
  const rows = page.matchAll(/^\| ([A-Z]\w+) \| (.*) \| (.*) \|$/gm);
  const fieldsIn = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, field = ""]) => field).sort();
  return new Map(
    [...rows].map(([, kind = "", stay, go]) => [
      kind,
      { "left alone": fieldsIn(stay), removed: fieldsIn(go) },
    ]),
  );
}

it("entries that another client adds stay or are removed as documented for each field", async () => {
  const found = new Map<string, Record<Rule, string[]>>();
  for (const [kind, name] of names) {
    const fields = found.get(kind) ?? { "left alone": [], removed: [] };
    found.set(kind, fields);
    for (const [field, rule] of await additionRules(child(kind, name))) {
      // these two fields are the same for every child
      if (["metadata.labels", "metadata.annotations"].includes(field)) expect(rule).toBe("left alone");
      else if (!fields[rule].includes(field)) fields[rule].push(field);
    }
    for (const list of Object.values(fields)) list.sort();
  }
  expect(await documentedRules()).toEqual(found);
});

describe("conflicting additions of other clients are removed:", () => {
  const main = ({ spec }: KubernetesObject) =>
    (spec as { template: { spec: { containers: Json[]; volumes: Json[] } } }).template.spec;
  const named = (list: unknown, name: string) => (list as Json[]).find((item) => item.name === name) as Json;
  const mist = (object: KubernetesObject) => named(main(object).containers, "mist");

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

  it("other additions stay", async () => {
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

it("the operator repairs a changed port and selector of a Service, with the role of the chart", async () => {
  await using house = await OperatorHouse.open({}, plane.address);
  await house.putLicense(await house.issuer.issue());
  await house.putDeployment();
  const { spec } = await eventually("the Service", () => house.mustGet("Service", "demo-api"));
  await house.idle();
  const changed = [{ name: "http", port: 9000, targetPort: "http", protocol: "TCP" }];
  const patch = JSON.stringify({ spec: { ports: changed, selector: { theirs: "1" } } });
  await house.kubectl("patch", "service", "demo-api", "--type=merge", "-p", patch);
  await house.until(
    async () => JSON.stringify((await house.mustGet("Service", "demo-api")).spec) === JSON.stringify(spec),
    "the Service as it was",
  );
});

describe("changed labels that identify children:", () => {
  let house: OperatorHouse;
  beforeAll(async () => {
    house = await OperatorHouse.open({}, plane.address);
    await house.ready({ networkPolicy: { enabled: true } });
    await house.idle();
  });
  afterAll(() => house[Symbol.asyncDispose]());

  const others = { "app.kubernetes.io/managed-by": null, "tts.svc.dev/deployment": "other" };

  it.each([
    ["Secret", "demo-token"],
    ["ServiceAccount", "demo-api"],
    ["Role", "demo-api"],
    ["RoleBinding", "demo-api"],
    ["ConfigMap", "demo-routing"],
    ["Service", "demo-api"],
    ["NetworkPolicy", "demo-model"],
    ["PodDisruptionBudget", "demo-mist"],
    ["TtsModelPool", "demo-mist"],
    ["Deployment", "demo-mist"],
  ])("those of %s %s are restored without losing a route", async (kind, name) => {
    const before = await house.mustGet(kind, name);
    const { data: routes } = await house.mustGet("ConfigMap", "demo-routing");
    const patch = JSON.stringify({ metadata: { labels: others } });
    await house.kubectl("patch", kind.toLowerCase(), name, "--type=merge", "-p", patch);
    await house.until(async () => {
      const { metadata } = await house.mustGet(kind, name);
      return JSON.stringify(metadata.labels) === JSON.stringify(before.metadata.labels);
    }, "the labels as they were");
    await house.idle();
    expect(contentOf(await house.mustGet(kind, name))).toEqual(contentOf(before));
    expect((await house.mustGet("ConfigMap", "demo-routing")).data).toEqual(routes);
  });
});
