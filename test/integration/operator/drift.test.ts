/**
 * Changes and removes every value, map key and list item that the operator applies, one at a time, in every
 * kind of child on a real API server. One apply must restore the whole object. docs/reference/additions.md
 * documents which entries of other clients stay.
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

/** Two deployments that together have every kind of child, and pods with and without a GPU. */
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

/** Kinds whose objects consist of the same parts. Each run changes one object of the kind completely, in turn. */
const rotatedKinds = ["Deployment", "TtsModelPool", "NetworkPolicy"];
/** The object of each rotated kind in which this run makes every change. */
const wholeObjects: ReadonlyMap<string, string> = new Map(
  rotatedKinds.map((kind) => {
    const objects = names.flatMap((entry) => (entry[0] === kind ? [entry[1]] : []));
    return [kind, objects[turnOf(objects.length)] ?? ""];
  }),
);
/** The paths of each object in `wholeObjects`, by kind. The run skips these paths in other objects of the kind. */
const pathsOfWhole = new Map<string, ReadonlySet<string>>();

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
  const rendered = Object.entries(deployments).map(([name, one]) => childrenOf(one, { name, namespace }));
  children = (await Promise.all(rendered)).flat();
  for (const [kind, name] of wholeObjects) {
    const whole = await client.apply(child(kind, name));
    pathsOfWhole.set(
      kind,
      new Set(changesOf(appliedPart(whole)).map((change) => withoutIndexes(change.name))),
    );
  }
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

async function poolChildrenOf(manifest: KubernetesObject): Promise<readonly KubernetesObject[]> {
  const pool = (await client.apply(manifest)) as TtsModelPool;
  const facts = {
    grant: granted,
    now,
    canary: undefined,
    routed: false,
    figures: undefined,
    licensedCanary: 0,
  };
  const workload = { deployment: undefined, pods: [] };
  return poolChildren({ ...facts, observed: { pool, workload } }, serverSettings).children;
}

function child(kind: string, name: string): KubernetesObject {
  const found = children.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`the operator rendered no ${kind} ${name}`);
  return found;
}

/** Returns the stored object without its status and history. */
function contentOf({ status: _, metadata, ...rest }: KubernetesObject): Json {
  const { managedFields, resourceVersion, generation, creationTimestamp, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

const textOf = (object: KubernetesObject) => JSON.stringify(contentOf(object));

/**
 * Changes the object like `kubectl edit`.
 * @returns undefined if the API server rejects the change, or if the change has no effect
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

const withoutIndexes = (change: string) => change.replace(/\/\d+(?=[/ ])/g, "/*");

/**
 * Returns the changes of one child. If another object of the kind is changed completely, these are only the
 * changes that this object does not have.
 */
function changesIn(live: KubernetesObject): readonly ChildChange[] {
  const changes = changesOf(appliedPart(live));
  const covered = pathsOfWhole.get(live.kind);
  if (covered === undefined || wholeObjects.get(live.kind) === live.metadata.name) return changes;
  return changes.filter(({ name }) => !covered.has(withoutIndexes(name)));
}

/**
 * Makes each change, and repairs it.
 * @returns the changes that were made, that the API server rejected, and that one apply did not repair
 */
async function disturb(desired: KubernetesObject, live: KubernetesObject) {
  const whole = textOf(live);
  const [made, rejected, unrepaired]: [string[], string[], string[]] = [[], [], []];
  let current = live;
  for (const change of changesIn(live)) {
    const changed = await changedBy(current, change);
    if (changed === undefined) {
      rejected.push(change.name);
      continue;
    }
    made.push(change.name);
    const repaired = await repair(change, changed, desired).catch((error: unknown) => String(error));
    if (typeof repaired === "string") unrepaired.push(`${change.name}: ${repaired}`);
    const isWhole = typeof repaired !== "string" && textOf(repaired) === whole;
    current = isWhole ? repaired : await restored(live);
    if (!isWhole && !isKeyAlone.test(change.name)) unrepaired.push(`${change.name}: differs`);
  }
  return { made, rejected, unrepaired };
}

/** Items that consist only of a key. After a change of the key, the item is an addition of another client. */
const isKeyAlone = /\/imagePullSecrets\/\d+\/name /;

/**
 * @throws Error if the object still differs after one apply, because the operator would repair it endlessly
 */
async function repair(
  { name }: ChildChange,
  changed: KubernetesObject,
  desired: KubernetesObject,
): Promise<KubernetesObject> {
  const { manifest } = await applier.ensure(changed, desired);
  if (!isApplied(manifest, desired)) throw new Error(`one apply does not repair the change ${name}`);
  return manifest;
}

async function restored(before: KubernetesObject): Promise<KubernetesObject> {
  const { apiVersion, kind, metadata } = before;
  const { namespace = "", name } = metadata;
  const now = await client.get({ apiVersion, kind, namespace, name });
  const { resourceVersion = "" } = now?.metadata ?? {};
  return client.replace({ ...before, metadata: { ...metadata, resourceVersion } });
}

it.concurrent.each(names)("one apply repairs each changed field of %s %s", async (kind, name) => {
  const desired = child(kind, name);
  const live = await client.apply(desired);
  expect(isApplied(live, desired)).toBe(true);
  const { made, rejected, unrepaired } = await disturb(desired, live);
  expect(unrepaired).toEqual([]);
  expect(pathsWithoutChange(made, rejected).filter((path) => !locked[kind]?.test(path))).toEqual([]);
});

/** Returns the paths at which the API server rejected every change of a single value. */
function pathsWithoutChange(made: readonly string[], rejected: readonly string[]): string[] {
  const pathOf = (name: string) => name.replace(/ \w+$/, "");
  const changedPaths = made.map(pathOf);
  const single = rejected.filter((name) => !name.startsWith("every ")).map(pathOf);
  return [...new Set(single)].filter(
    (path) => !changedPaths.some((other) => other === path || other.startsWith(`${path}/`)),
  );
}

/** Fields that are immutable, or that can only change together with another field. */
const locked: Readonly<Record<string, RegExp>> = {
  Secret: /^\/type$/,
  RoleBinding: /^\/(roleRef|subjects\/0\/kind$)/,
  // The defaults of the schema restore removed maps and lists.
  TtsModelPool:
    /^\/spec\/(deployment|kind|accelerator\/(nodeSelector|tolerations)|telemetry\/resourceAttributes)$/,
  HorizontalPodAutoscaler: /^\/spec\/metrics\/0\/type$/,
  Deployment: new RegExp(
    [
      // The selector must match the labels, and the type of the strategy its parameters.
      "^/spec/(selector|strategy/type$|template/metadata/labels/)",
      // The names of volumes must match the mounts.
      "/volumes/\\d+/name$|/initContainers/0/volumeMounts/0/name$",
      // These fields have only one possible value.
      "/fieldRef(/apiVersion)?$|/initContainers/0/restartPolicy$",
    ].join("|"),
  ),
};

it("the tests of this file cover every kind of child", () => {
  const made = rulesOf("workload").filter(({ verbs }) => verbs.includes("create"));
  // The operator writes these objects once. Only the size of a claim can be changed later, and no field of a
  // Job.
  const writtenOnce = ["events", "controllerrevisions", "jobs", "persistentvolumeclaims"];
  const kinds = made
    .flatMap(({ resources }) => resources)
    .filter((resource) => !writtenOnce.includes(resource));
  const pluralsOf = (names: readonly string[]) => [...new Set(names.map((kind) => resourceOf(kind).plural))];
  expect(pluralsOf(children.map(({ kind }) => kind)).sort()).toEqual(kinds.sort());
  expect(pluralsOf(names.map(([kind]) => kind)).sort()).toEqual(kinds.sort());
});

type Rule = "left alone" | "removed";

/** Returns for each field of the child whether an entry that another client adds stays. */
async function additionRules(desired: KubernetesObject): Promise<Map<string, Rule>> {
  const live = await client.apply(desired);
  const whole = textOf(live);
  const rules = new Map<string, Rule>();
  for (const addition of additionsTo(appliedPart(live))) {
    const changed = await changedBy(await restored(live), addition);
    if (changed === undefined) continue;
    const { manifest } = await applier.ensure(changed, desired);
    // An addition that stays must also remain after an apply for another reason.
    const rule = textOf(await client.apply(desired)) === whole ? "removed" : "left alone";
    if (rule === "left alone") expect(textOf(manifest)).toBe(textOf(changed));
    rules.set(addition.field, rules.get(addition.field) ?? rule);
  }
  await restored(live);
  return rules;
}

/**
 * Reads the rows of docs/reference/additions.md: for each kind, the fields in which additions stay, and the
 * fields in which additions are removed.
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

it("entries that another client adds stay or are removed as docs/reference/additions.md documents", async () => {
  const tested = new Map<string, Record<Rule, string[]>>();
  for (const [kind, name] of names) {
    const fields = tested.get(kind) ?? { "left alone": [], removed: [] };
    tested.set(kind, fields);
    for (const [field, rule] of await additionRules(child(kind, name))) {
      // These two fields have the same rule in every child.
      if (["metadata.labels", "metadata.annotations"].includes(field)) expect(rule).toBe("left alone");
      else if (!fields[rule].includes(field)) fields[rule].push(field);
    }
    for (const list of Object.values(fields)) list.sort();
  }
  expect(await documentedRules()).toEqual(tested);
});

describe("an apply removes conflicting changes of other clients:", () => {
  const main = ({ spec }: KubernetesObject) =>
    (spec as { template: { spec: { containers: Json[]; volumes: Json[] } } }).template.spec;
  const named = (list: unknown, name: string) => (list as Json[]).find((item) => item.name === name) as Json;
  const mist = (object: KubernetesObject) => named(main(object).containers, "mist");

  it.each<[string, string, string, Edit]>([
    [
      "a port with another number and the same name",
      "Service",
      "demo-api",
      ({ spec }) => Object.assign(((spec as Json).ports as Json[])[0] as Json, { port: 9000 }),
    ],
    [
      "another source of an environment variable",
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
      "another limit of a PodDisruptionBudget",
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
    if (changed === undefined) throw new Error(`the API server rejected the change of ${kind} ${name}`);
    const { manifest } = await applier.ensure(changed, desired);
    expect(contentOf(manifest)).toEqual(contentOf(live));
  });

  it("additions without a conflict stay", async () => {
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

it("the operator with the role of the chart repairs a changed port and selector of a Service", async () => {
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
    "the restored Service",
  );
});

describe("changed labels that identify children are restored:", () => {
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
  ])("labels of %s %s, and the routing table stays unchanged", async (kind, name) => {
    const before = await house.mustGet(kind, name);
    const { data: routes } = await house.mustGet("ConfigMap", "demo-routing");
    const patch = JSON.stringify({ metadata: { labels: others } });
    await house.kubectl("patch", kind.toLowerCase(), name, "--type=merge", "-p", patch);
    await house.until(async () => {
      const { metadata } = await house.mustGet(kind, name);
      return JSON.stringify(metadata.labels) === JSON.stringify(before.metadata.labels);
    }, "the restored labels");
    await house.idle();
    expect(contentOf(await house.mustGet(kind, name))).toEqual(contentOf(before));
    expect((await house.mustGet("ConfigMap", "demo-routing")).data).toEqual(routes);
  });
});
