/**
 * Tests two tenants on one cluster, with the roles and the admission policies of the chart. One tenant tries to
 * exceed its class. The other tenant keeps its service.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultClassAnnotation } from "../../../config/contract/names.ts";
import { freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds, type KubectlResult, kubectl, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { eventually } from "../../support/eventually.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";
import {
  type Attempt,
  type Json,
  refusedAtApply,
  refusedByOperator,
  tenantClass,
} from "../../support/operator/tenant-attempts.ts";
import { licenseIssuer } from "../../support/server/licenses.ts";

let plane: ControlPlane;
let house: OperatorHouse;
let otherNamespace: string;

const mist = { name: "mist", kind: "mist", replicas: 1 };
const base = { className: "team-a", license: { secretRef: { name: "tts-license" } } };
/** The tenant has the role of the chart for users. The insider has every right on tts.svc.dev in the namespace. */
type Account = "tenant" | "insider";

beforeAll(async () => {
  const controllers = ["validatingadmissionpolicy-status-controller"];
  plane = await controlPlane({ controllerManager: true, controllers, prepare: installCrds });
  house = await OperatorHouse.open({ clusterWide: true }, plane.address);
  otherNamespace = await freshNamespace(house.admin, "other");
  await installPolicies();
  await grant();
  await house.putClass("team-a", tenantClass);
  await house.putClass("team-b", { limits: { allowedNamespaces: [otherNamespace] } });
  const limits = { allowedServiceTypes: ["ClusterIP"] };
  await house.putClass("shared", { limits }, { [defaultClassAnnotation]: "true" });
  await house.restart({ allNamespaces: true });
  await house.putLicense(await house.issuer.issue(), "tts-license");
  await house.putDeployment(base, [mist], "mine");
  await house.untilCondition("ClassAccepted", /^True/, "mine");
  await house.untilThere("Deployment", "mine-mist");
  const literal = `--from-literal=license.jwt=${await house.issuer.issue()}`;
  const secret = ["create", "secret", "generic", "tts-license", literal];
  await kubectlOrThrow(plane.address, ["-n", otherNamespace, ...secret]);
  const theirs = { ...manifestOf("theirs", { className: "team-b", license: base.license }) };
  await kubectlOrThrow(plane.address, ["-n", otherNamespace, "apply", "-f", "-"], JSON.stringify(theirs));
  await eventually("the policy is in effect", async () => {
    const { stderr } = await apply("policy", { api: { service: { type: "NodePort" } } });
    return stderr.includes("denied request");
  });
});

afterAll(async () => {
  await house[Symbol.asyncDispose]();
  await plane.stop();
});

/** Applies the policies and the roles for users, as the chart renders them. */
async function installPolicies(): Promise<void> {
  const chart = join(import.meta.dirname, "../../../charts/tts-operator");
  const { stdout } = await promisify(execFile)(join(plane.address.binDirectory, "helm"), [
    ...["template", "op", chart, "--namespace", house.namespace, "--kube-version", "1.36.3"],
    ...["--set", `fullnameOverride=${house.namespace}-tts-operator`],
    ...["--show-only", "templates/class-policy.yaml", "--show-only", "templates/user-roles.yaml"],
  ]);
  await kubectlOrThrow(plane.address, ["apply", "-f", "-"], stdout);
}

async function grant(): Promise<void> {
  const name = `${house.namespace}-tts-operator`;
  for (const role of ["edit", "view"])
    await house.kubectl("create", "rolebinding", role, `--clusterrole=${name}-${role}`, "--user=tenant");
  await house.kubectl("create", "role", "insider", "--verb=*", "--resource=*.tts.svc.dev");
  await house.kubectl("create", "rolebinding", "insider", "--role=insider", "--user=insider");
}

function manifestOf(name: string, spec: Json = {}, models: Json[] = [mist]): Json {
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsDeployment",
    metadata: { name },
    spec: { ...base, ...spec, models },
  };
}

function run(account: Account, args: readonly string[], input?: Json): Promise<KubectlResult> {
  const words = [`--as=${account}`, "-n", house.namespace, ...args];
  return kubectl(plane.address, words, input && JSON.stringify(input));
}

function apply(name: string, spec?: Json, models?: Json[]): Promise<KubectlResult> {
  return run("tenant", ["apply", "-f", "-"], manifestOf(name, spec, models));
}

describe("the API server refuses at apply", () => {
  it.each(refusedAtApply.map((attempt): [string, Attempt] => [attempt.what, attempt]))(
    "%s",
    async (_what, { spec, models, message }) => {
      const { code, stderr } = await apply("attempt", spec, models);
      expect(stderr).toContain(message);
      expect(stderr).toMatch(/TtsClass (team-a|team-b|shared) does not allow the spec/);
      expect(code).toBe(1);
    },
  );

  it("a later change of an accepted TtsDeployment, also to a class of another tenant", async () => {
    for (const patch of [{ api: { service: { type: "NodePort" } } }, { className: "team-b" }]) {
      const args = ["patch", "ttsd/mine", "--type=merge", "-p", JSON.stringify({ spec: patch })];
      expect((await run("tenant", args)).stderr).toContain("does not allow the spec");
    }
  });
});

describe("the API server accepts", () => {
  it("a TtsDeployment within the limits", async () => {
    const spec = {
      api: {
        route: { hostnames: ["tts.a.example"], ingress: { annotations: { "a.example/x": "1" } } },
        image: "images.example/api:1",
        podTemplate: { spec: { nodeSelector: { zone: "a" } } },
      },
    };
    const models = [
      {
        ...mist,
        image: "registry.example/speech:1@sha256:0",
        acceleratorProfile: "l4",
        env: [{ name: "LOG_LEVEL", value: "debug" }],
        cache: {
          persistentVolumeClaim: { claimName: "models" },
          sources: [{ url: "hf://hexgrad/m@main/a" }],
        },
      },
    ];
    expect((await apply("fine", spec, models)).stderr).toBe("");
    await house.untilCondition("ClassAccepted", /^True/, "fine");
    await house.remove("TtsDeployment", "fine");
  });

  it("an annotation of a TtsDeployment that the class refuses since it became stricter", async () => {
    await house.putClass("team-a", {});
    await house.putDeployment({ ...base, api: { service: { type: "NodePort" } } }, [mist], "old");
    await house.putClass("team-a", tenantClass);
    await house.untilCondition("ClassAccepted", /^False/, "old");
    expect((await run("tenant", ["annotate", "ttsd/old", "a=b"])).stderr).toBe("");
    await house.remove("TtsDeployment", "old");
  });
});

describe("the operator refuses", () => {
  it.each(refusedByOperator.map((attempt): [string, Attempt] => [attempt.what, attempt]))(
    "%s",
    async (_what, { spec, models, message }) => {
      expect((await apply("attempt", spec, models)).stderr).toBe("");
      await house.until(
        async () => (await house.condition("ClassAccepted", "attempt")).includes(message),
        `the condition contains ${message}`,
      );
      expect(await house.get("Deployment", "attempt-api")).toBeUndefined();
      await house.remove("TtsDeployment", "attempt");
      await house.untilGone("TtsDeployment", "attempt");
    },
  );

  it("pods of a suspended TtsDeployment that are counted no more", async () => {
    const patch = { spec: { suspend: true, models: [{ ...mist, replicas: 0 }] } };
    expect(
      (await run("tenant", ["patch", "ttsd/mine", "--type=merge", "-p", JSON.stringify(patch)])).stderr,
    ).toBe("");
    await house.untilCondition("Ready", /^Unknown Suspended/, "mine");
    await apply("attempt", {}, [{ ...mist, replicas: 4 }]);
    await house.untilCondition("ClassAccepted", /other TtsDeployments of the namespace request 2/, "attempt");
    await house.remove("TtsDeployment", "attempt");
    await house.putDeployment(base, [mist], "mine");
  });

  it("more replicas by kubectl scale: it sets the pool back", async () => {
    expect((await run("tenant", ["scale", "ttsmp/mine-mist", "--replicas=50"])).stderr).toBe("");
    await house.until(async () => (await house.pool("mine-mist")).spec.replicas === 1, "one replica");
    await house.idle();
    expect(await house.replicas("mine-mist")).toBe(1);
  });

  it("a license that the tenant signed, and an expired license", async () => {
    const licenses = {
      "tts-forged": [await (await licenseIssuer()).issue(), /^False Invalid/],
      "tts-expired": [await house.issuer.issue({ exp: 1_000_000_000, graceDays: 0 }), /^False Expired/],
      "tts-missing": [undefined, /^False Missing/],
    } as const;
    for (const [name, [token, condition]] of Object.entries(licenses)) {
      if (token !== undefined) await house.putLicense(token, name);
      await apply("attempt", { license: { secretRef: { name } } });
      await house.untilCondition("LicenseValid", condition, "attempt");
      await house.idle();
      expect(await house.get("Deployment", "attempt-mist")).toBeUndefined();
      await house.remove("TtsDeployment", "attempt");
      await house.untilGone("TtsDeployment", "attempt");
    }
  });
});

const toPool = (patch: Json) => ["patch", "ttsmp/mine-mist", "--type=merge", "-p", JSON.stringify(patch)];
const forgedStatus = { status: { class: { name: "team-a", isDefault: false, generation: 1, spec: "{}" } } };
const toStatus = [
  "patch",
  "ttsd/mine",
  "--subresource=status",
  "--type=merge",
  "-p",
  JSON.stringify(forgedStatus),
];
const pinned = { metadata: { annotations: { "tts.svc.dev/pod-template": "{}" } } };
const ownPool = {
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsModelPool",
  metadata: { name: "own" },
  spec: { deployment: "mine", pool: "own", kind: "mist", replicas: 50 },
};
const unlimited = {
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsClass",
  metadata: { name: "mine" },
  spec: {},
};
const limitless = ["patch", "ttsclass/team-a", "--type=merge", "-p", '{"spec":{"limits":null}}'];
const onlyOperator = (what: string) => `Only the operator ${what}`;

describe("the API server refuses changes of what the operator trusts", () => {
  it.each<[string, Account, string[], Json | undefined, string]>([
    ["a pool", "tenant", toPool({ spec: { image: "evil" } }), undefined, "cannot patch resource"],
    ["a new pool", "tenant", ["create", "-f", "-"], ownPool, "cannot create resource"],
    ["the accepted spec in the status", "tenant", toStatus, undefined, "cannot patch resource"],
    ["a class", "tenant", limitless, undefined, 'cannot get resource "ttsclasses"'],
    ["a new class", "tenant", ["create", "-f", "-"], unlimited, "cannot create resource"],
    ["a pool", "insider", toPool({ spec: { image: "evil" } }), undefined, onlyOperator("changes the spec")],
    ["the template of a pool", "insider", toPool(pinned), undefined, onlyOperator("changes the stored pod")],
    ["a new pool", "insider", ["create", "-f", "-"], ownPool, onlyOperator("creates TtsModelPools")],
    ["the accepted spec in the status", "insider", toStatus, undefined, onlyOperator("writes the status")],
    ["a class", "insider", limitless, undefined, 'cannot get resource "ttsclasses"'],
  ])("%s, by the %s", async (_what, account, args, input, message) => {
    const { code, stderr } = await run(account, args, input);
    expect(stderr).toContain(message);
    expect(code).toBe(1);
  });
});

describe("the API server accepts for a pool", () => {
  it("an annotation by the insider, and a change of the spec by an administrator", async () => {
    expect((await run("insider", toPool({ metadata: { annotations: { note: "x" } } }))).stderr).toBe("");
    await house.kubectl(...toPool({ spec: { image: "registry.example/speech/mist:2" } }));
  });
});

describe("after all attempts", () => {
  it("the other tenant has its pods, and the first tenant has its accepted service", async () => {
    const args = ["-n", otherNamespace, "get", "deployments", "-o", "name"];
    expect(await kubectlOrThrow(plane.address, args)).toBe(
      "deployment.apps/theirs-api\ndeployment.apps/theirs-mist\n",
    );
    await house.untilCondition("ClassAccepted", /^True/, "mine");
    const names = (await house.admin.list("Deployment", { namespace: house.namespace })).map(
      ({ metadata }) => metadata.name,
    );
    expect(names.sort()).toEqual(["mine-api", "mine-mist"]);
  });

  it("the policies have no warnings of the type check", async () => {
    const policies = async () => {
      const text = await kubectlOrThrow(plane.address, ["get", "validatingadmissionpolicies", "-o", "json"]);
      return (JSON.parse(text) as { items: { status?: { typeChecking?: object } }[] }).items;
    };
    await house.until(
      async () => (await policies()).every(({ status }) => status?.typeChecking !== undefined),
      "the types of every policy are checked",
    );
    expect((await policies()).map(({ status }) => status?.typeChecking)).toEqual([{}, {}]);
  });

  it("docs/evidence/tenants.md lists every attempt", async () => {
    const page = await readFile(join(import.meta.dirname, "../../../docs/evidence/tenants.md"), "utf8");
    for (const { what, message } of [...refusedAtApply, ...refusedByOperator])
      expect(page).toContain(`| ${what} | \`${message}\` |`);
  });
});
