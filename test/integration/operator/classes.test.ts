/**
 * Tests TtsClasses with an operator that watches all namespaces. Classes are cluster-scoped, and a default
 * class applies to every namespace, so this file has its own control plane.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { defaultClassAnnotation } from "../../../config/contract/names.ts";
import type { Deployment } from "../../../operator/facts/observed.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds } from "../../support/cluster/kubectl.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ controllerManager: true, prepare: installCrds });
});

afterAll(() => plane.stop());

const everywhere = { allNamespaces: true, licenseKeys: { keys: [] } };

beforeEach(async () => {
  house = await OperatorHouse.open({ clusterWide: true }, plane.address);
  await house.restart(everywhere);
});

afterEach(async () => {
  await house.stopOperator();
  for (const kind of ["TtsDeployment", "TtsModelCache", "TtsClass"])
    for (const { metadata } of await house.admin.list(kind, {}))
      await house.admin.remove({ apiVersion: "tts.svc.dev/v1alpha1", kind, ...placeOf(metadata) });
  await house[Symbol.asyncDispose]();
});

const placeOf = ({ name, namespace }: { name: string; namespace?: string }) => ({
  name,
  ...(namespace !== undefined && { namespace }),
});

type Json = { [name: string]: unknown };

const isDefault = { [defaultClassAnnotation]: "true" };
const mist = { name: "mist", kind: "mist", replicas: 1 };
const silver = { className: "silver", license: undefined };
const plain = { license: undefined };

/** Creates a TtsDeployment, and waits until it is ready. */
async function serves(spec: Json, models: Json[] = [mist]): Promise<void> {
  await house.putDeployment(spec, models);
  await house.serve("demo-api", ...models.map(({ name }) => `demo-${name}`));
  await house.untilReady();
}

const untilAccepted = () => house.untilCondition("ClassAccepted", /^True Accepted/);
const untilRefused = (text: string) =>
  house.untilCondition("ClassAccepted", new RegExp(`^False ClassLimitExceeded: .*${text}`));
const templateOf = ({ spec }: Deployment) => spec?.template.spec;

/** Returns the generations of the Deployments, which change when the operator changes their specs. */
async function generations(): Promise<(number | undefined)[]> {
  const workloads = await Promise.all(["demo-api", "demo-mist"].map((name) => house.workload(name)));
  return workloads.map(({ metadata }) => metadata.generation);
}

describe("a TtsDeployment without a class", () => {
  it("has no condition ClassAccepted, and a class that another TtsDeployment names changes nothing", async () => {
    await serves(plain);
    const before = await generations();
    await house.putClass("silver", { limits: { allowedServiceTypes: [] } });
    await house.idle();
    expect(await house.condition("ClassAccepted")).toBe("absent");
    expect((await house.deployment()).status?.class).not.toHaveProperty("name");
    expect(await generations()).toEqual(before);
    expect(await house.writesOfRestart(everywhere)).toBe(0);
  });

  it("keeps its pods when it gets a class without defaults", async () => {
    await serves(plain);
    const before = await generations();
    await house.putClass("silver", {});
    await house.putDeployment(silver, [mist]);
    await untilAccepted();
    await house.untilReady();
    expect(await generations()).toEqual(before);
    expect(await house.writesOfRestart(everywhere)).toBe(0);
  });

  it("is reconciled by an operator of single namespaces, which ignores default classes and rejects names", async () => {
    await house.putClass("shared", { limits: { allowedServiceTypes: [] } }, isDefault);
    await house.restart({ licenseKeys: { keys: [] } });
    await serves(plain);
    expect(await house.condition("ClassAccepted")).toBe("absent");
    await house.putDeployment({ className: "shared", ...plain }, [mist]);
    await house.untilCondition("ClassAccepted", /^False ClassNotFound: .*watches single namespaces/);
  });
});

describe("an operator of single namespaces with a class in its settings", () => {
  const namespaced = { licenseKeys: { keys: [] } };

  it("applies its defaults and limits to every TtsDeployment, and stops to do so without the class", async () => {
    const classOfSettings = {
      defaults: { priorityClassName: "speech" },
      limits: { allowedServiceTypes: ["ClusterIP"], allowedModelSources: [] },
    };
    await house.restart({ ...namespaced, classOfSettings });
    await serves(plain);
    expect(await house.condition("ClassAccepted")).toContain("TtsClass operator-settings");
    expect(templateOf(await house.workload("demo-mist"))?.priorityClassName).toBe("speech");
    await house.putDeployment({ ...plain, api: { service: { type: "NodePort" } } }, [mist]);
    await untilRefused("TtsClass operator-settings does not allow the spec: spec.api.service.type");
    await house.putCache();
    await house.untilConditionOf(
      "TtsModelCache",
      "voices",
      "Stalled",
      /^True ClassLimitExceeded: TtsClass operator-settings does not allow the spec: spec.sources/,
    );
    await house.restart(namespaced);
    await house.untilCondition("ClassAccepted", /absent/);
    await house.until(
      async () => JSON.stringify(await house.get("Service", "demo-api")).includes('"type":"NodePort"'),
      "the type of the Service without a class",
    );
  });
});

describe("the defaults of a class", () => {
  it("apply to the pods, and a change of the class reaches them", async () => {
    const accelerator = { nodeSelector: { gpu: "l4" } };
    const defaults = { images: { mist: "r.example/mist:1" }, imagePullSecrets: [{ name: "pull" }] };
    await house.putClass("silver", { defaults, acceleratorProfiles: [{ name: "l4", accelerator }] });
    await serves(silver, [{ ...mist, acceleratorProfile: "l4" }]);
    const pods = templateOf(await house.workload("demo-mist"));
    expect(pods).toMatchObject({ nodeSelector: { gpu: "l4" }, imagePullSecrets: [{ name: "pull" }] });
    expect(pods?.containers[0]).toMatchObject({
      image: "r.example/mist:1",
      resources: { limits: { "nvidia.com/gpu": "1" } },
    });
    expect(await house.writesOfRestart(everywhere)).toBe(0);

    await house.putClass("silver", {
      defaults: { ...defaults, images: { mist: "r.example/mist:2" } },
      acceleratorProfiles: [{ name: "l4", accelerator }],
    });
    await house.until(
      async () => templateOf(await house.workload("demo-mist"))?.containers[0]?.image === "r.example/mist:2",
      "the image of the changed class",
    );
  });
});

describe("the limits of a class", () => {
  const limits = {
    allowedHostnames: ["*.a.example"],
    allowedServiceTypes: ["ClusterIP"],
    podTemplate: "Safe",
    maxReplicasPerNamespace: 4,
  };

  it("refuse a change, name fields, values and class, and the service continues with the accepted spec", async () => {
    await house.putClass("silver", { limits });
    await serves(silver);
    const before = await generations();
    const route = { hostnames: ["tts.b.example"], ingress: {} };
    await house.putDeployment(
      {
        ...silver,
        api: { service: { type: "LoadBalancer" }, route, podTemplate: { spec: { hostPID: true } } },
      },
      [{ ...mist, replicas: 9 }],
    );
    await untilRefused("TtsClass silver does not allow");
    const message = await house.condition("ClassAccepted");
    for (const part of [
      "spec.api.route.hostnames[0] is tts.b.example, but the class allows *.a.example.",
      "spec.api.service.type is LoadBalancer, but the class allows ClusterIP.",
      "spec.api.podTemplate.spec.hostPID is set",
      "spec requests 10 pods, but the class allows 4 pods in each namespace.",
    ])
      expect(message).toContain(part);
    await house.idle();
    expect(await house.condition("Ready")).toMatch(/^False ClassLimitExceeded/);
    expect(await house.condition("Stalled")).toMatch(/^True ClassLimitExceeded/);
    expect(await generations()).toEqual(before);
    expect(await house.get("Ingress", "demo-api")).toBeUndefined();

    // The operator still repairs children of the accepted spec.
    await house.remove("Service", "demo-api");
    await house.untilThere("Service", "demo-api");
    expect((await house.mustGet("Service", "demo-api")).spec).toMatchObject({ type: "ClusterIP" });
    expect(await house.writesDuring(120_000)).toBe(0);

    await house.putDeployment(silver, [{ ...mist, replicas: 2 }]);
    await untilAccepted();
    await house.untilReplicas("demo-mist", 2);
  });

  it("refuse a new TtsDeployment: no child is created, also after a restart of the operator", async () => {
    await house.putClass("silver", { limits });
    await house.putDeployment({ ...silver, api: { service: { type: "NodePort" } } }, [mist]);
    await untilRefused("spec.api.service.type is NodePort");
    await house.restart(everywhere);
    await house.idle();
    for (const kind of ["Deployment", "Service", "TtsModelPool"])
      expect(await house.admin.list(kind, { namespace: house.namespace })).toEqual([]);
    await house.putClass("silver", { limits: { ...limits, allowedServiceTypes: ["NodePort"] } });
    await untilAccepted();
    await house.untilThere("Deployment", "demo-api");
  });

  it("count the TtsDeployments of a namespace together, and capacity that becomes free is used", async () => {
    await house.putClass("silver", { limits });
    await serves(silver, [{ ...mist, replicas: 2 }]);
    await house.putDeployment(silver, [mist], "second");
    await house.untilCondition(
      "ClassAccepted",
      /^False ClassLimitExceeded: .*spec requests 2 pods, and other TtsDeployments of the namespace request 3/,
      "second",
    );
    await house.putDeployment(silver, [mist]);
    await house.untilReplicas("demo-mist", 1);
    await house.advance(60_000);
    await house.untilCondition("ClassAccepted", /^True/, "second");
    await house.untilThere("Deployment", "second-api");
  });

  it("that become stricter change no running TtsDeployment: it stays ready and reports the violation", async () => {
    await house.putClass("silver", {});
    await serves({ ...silver, api: { service: { type: "NodePort" } } });
    const before = await generations();
    await house.putClass("silver", { limits });
    await untilRefused("spec.api.service.type is NodePort");
    await house.idle();
    expect(await house.condition("Ready")).toMatch(/^True/);
    expect(await generations()).toEqual(before);
    expect((await house.mustGet("Service", "demo-api")).spec).toMatchObject({ type: "NodePort" });
  });
});

describe("a class limits also", () => {
  const limits = { maxReplicasPerNamespace: 4, allowedServiceTypes: ["ClusterIP"] };

  it("fields that another client writes to a pool, which never reach the pods", async () => {
    await house.putClass("silver", { limits });
    const scaled = { name: "mist", kind: "mist", scaling: { maxReplicas: 3 } };
    await serves(silver, [scaled]);
    const before = templateOf(await house.workload("demo-mist"));
    const podTemplate = JSON.stringify({ spec: { hostNetwork: true } });
    const foreign = { priorityClassName: "high", podTemplate, env: [{ name: "EVIL", value: "1" }] };
    await house.kubectl("patch", "ttsmp/demo-mist", "--type=merge", "-p", JSON.stringify({ spec: foreign }));
    await house.kubectl("scale", "ttsmp/demo-mist", "--replicas=50");
    await house.idle();
    expect((await house.pool("demo-mist")).spec.priorityClassName).toBe("high");
    expect(templateOf(await house.workload("demo-mist"))).toEqual(before);
    expect(await house.replicas("demo-mist")).toBeLessThanOrEqual(3);
  });

  it("pools that another client creates for a TtsDeployment", async () => {
    await house.putClass("silver", { limits });
    await serves(silver);
    const { metadata, spec } = await house.pool("demo-mist");
    const { ownerReferences, labels } = metadata;
    const name = "demo-more";
    await house.admin.create({
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsModelPool",
      metadata: { name, namespace: house.namespace, ownerReferences, labels },
      spec: { ...spec, replicas: 9 },
    } as never);
    await house.idle();
    expect(await house.get("Deployment", name)).toBeUndefined();
  });

  it("the first edit that names it: the service is repaired with the spec that was served before", async () => {
    await house.putClass("silver", { limits });
    await serves(plain);
    await house.putDeployment({ ...silver, api: { service: { type: "NodePort" } } }, [mist]);
    await untilRefused("spec.api.service.type is NodePort");
    await house.remove("Service", "demo-api");
    await house.untilThere("Service", "demo-api");
    expect((await house.mustGet("Service", "demo-api")).spec).toMatchObject({ type: "ClusterIP" });
  });

  it("suspended TtsDeployments, whose pods continue to run", async () => {
    await house.putClass("silver", { limits });
    await serves(silver, [{ ...mist, replicas: 2 }]);
    await house.putDeployment({ ...silver, suspend: true }, [{ ...mist, replicas: 0 }]);
    await house.untilCondition("Ready", /^Unknown Suspended/);
    for (const restarts of [false, true]) {
      if (restarts) await house.restart(everywhere);
      await house.putDeployment(silver, [{ ...mist, replicas: 1 }], restarts ? "third" : "second");
      await house.untilCondition(
        "ClassAccepted",
        /^False ClassLimitExceeded: .*other TtsDeployments of the namespace request 3/,
        restarts ? "third" : "second",
      );
    }
  });

  it("a namespace over its sum: a spec that requests less is applied, and the condition stays False", async () => {
    await house.putClass("silver", {});
    await serves(silver, [{ ...mist, replicas: 8 }]);
    await house.putClass("silver", { limits });
    await untilRefused("spec requests 9 pods");
    await house.putDeployment(silver, [{ ...mist, replicas: 6 }]);
    await house.untilReplicas("demo-mist", 6);
    await house.idle();
    expect(await house.condition("ClassAccepted")).toMatch(/^False ClassLimitExceeded: .*requests 7 pods/);
    expect(await house.condition("Ready")).not.toContain("ClassLimitExceeded");
    expect(await house.writesDuring(120_000)).toBe(0);
  });
});

describe("classes that the operator cannot read", () => {
  it("let no change through: the accepted spec is kept, and a condition says why", async () => {
    await serves(plain);
    house.proxy.rule = ({ path }) =>
      path.endsWith("/ttsclasses") ? { kind: "answer", status: 403 } : undefined;
    await house.restart(everywhere);
    await house.putDeployment({ ...plain, api: { service: { type: "NodePort" } } }, [mist]);
    await house.untilCondition("ClassAccepted", /^False ClassesUnreadable: .*cannot read TtsClasses/);
    await house.untilCondition("Ready", /^False ClassesUnreadable/);
    await house.putCache();
    await house.untilConditionOf("TtsModelCache", "voices", "Stalled", /^True ClassesUnreadable/);
    expect((await house.mustGet("Service", "demo-api")).spec).toMatchObject({ type: "ClusterIP" });
    house.proxy.rule = () => undefined;
    await house.until(async () => {
      await house.advance(30_000);
      return JSON.stringify(await house.get("Service", "demo-api")).includes('"type":"NodePort"');
    }, "the changed type of the Service");
    expect(await house.condition("ClassAccepted")).toBe("absent");
    await house.until(async () => {
      await house.advance(30_000);
      return (await house.get("Job", "voices-fetch-1-0")) !== undefined;
    }, "the Job of the TtsModelCache");
  });
});

describe("a class that is deleted", () => {
  it("keeps the accepted state, stops changes, and applies again when it is created again", async () => {
    const gold = { defaults: { priorityClassName: "speech" } };
    await house.putClass("silver", gold);
    await serves(silver);
    const before = await generations();
    await house.remove("TtsClass", "silver");
    await house.untilCondition("ClassAccepted", /^False ClassNotFound: spec\.className is silver/);
    await house.idle();
    expect(await house.condition("Ready")).toMatch(/^True/);
    expect(await generations()).toEqual(before);

    await house.putDeployment(silver, [{ ...mist, replicas: 3 }]);
    await house.untilCondition("Ready", /^False ClassNotFound/);
    await house.idle();
    expect(await house.replicas("demo-mist")).toBe(1);
    expect(templateOf(await house.workload("demo-mist"))?.priorityClassName).toBe("speech");

    await house.putClass("silver", gold);
    await untilAccepted();
    await house.untilReplicas("demo-mist", 3);
  });
});

describe("the default class", () => {
  it("applies to TtsDeployments that name no class, and its deletion changes no pods", async () => {
    const defaults = { priorityClassName: "speech" };
    await house.putClass("shared", { defaults }, isDefault);
    await house.idle();
    await serves(plain);
    expect(await house.condition("ClassAccepted")).toContain("TtsClass shared, the default class,");
    expect(templateOf(await house.workload("demo-api"))?.priorityClassName).toBe("speech");
    expect(await house.kubectl("get", "ttsclass")).toMatch(/shared +true/);
    const before = await generations();
    await house.remove("TtsClass", "shared");
    await house.untilCondition("ClassAccepted", /^False ClassNotFound: The default TtsClass shared/);
    await house.idle();
    expect(await house.condition("Ready")).toMatch(/^True/);
    expect(await generations()).toEqual(before);
    await house.putClass("other", { defaults }, isDefault);
    await untilAccepted();
    expect(await generations()).toEqual(before);
  });

  it("that is created later keeps a running TtsDeployment that it does not allow", async () => {
    await serves({ ...plain, api: { service: { type: "NodePort" } } });
    const before = await generations();
    await house.putClass("shared", { limits: { allowedServiceTypes: ["ClusterIP"] } }, isDefault);
    await untilRefused("spec.api.service.type is NodePort");
    await house.idle();
    expect(await house.condition("Ready")).toMatch(/^True/);
    expect(await generations()).toEqual(before);
    await house.putDeployment(plain, [mist]);
    await untilAccepted();
    await house.until(
      async () => JSON.stringify(await house.get("Service", "demo-api")).includes('"type":"ClusterIP"'),
      "the allowed type of the Service",
    );
  });
});
