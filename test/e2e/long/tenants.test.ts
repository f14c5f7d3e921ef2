/**
 * Tests two tenants on a real cluster. One tenant makes each attempt of test/support/operator/tenant-attempts.ts to
 * exceed its class, and each attempt is refused. The pods of the other tenant stay, and serve requests all the time.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { api, defaultClassAnnotation } from "../../../config/contract/names.ts";
import { Deployed } from "../../support/cluster/deployed.ts";
import { Release, run } from "../../support/cluster/real-cluster.ts";
import { licenseSecret, mist, ttsDeployment, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";
import {
  type Attempt,
  type Json,
  refusedAtApply,
  refusedByOperator,
  tenantClass,
} from "../../support/operator/tenant-attempts.ts";

const cluster = inject("cluster");
const release = new Release();
const tenant = new World(cluster, "tenant");
const other = new World(cluster, "other");
const theirs = new Deployed(other, "theirs");
const user = "tenant";
const license = { secretRef: { name: licenseSecret } };
const model = { name: "mist", kind: "mist", replicas: 1 };
const classNames = ["team-a", "team-b", "shared"];
const body = { text: "The other tenant continues to speak.", speaker: "alan", modelId: "mist" };

beforeAll(async () => {
  await release.system.apply(
    // Images of the class are always allowed. With the image of the cluster, the accepted pods run.
    classOf("team-a", { ...tenantClass, defaults: { images: { mist: cluster.serverImage } } }),
    classOf("team-b", { limits: { allowedNamespaces: [other.namespace] } }),
    classOf(
      "shared",
      { limits: { allowedServiceTypes: ["ClusterIP"] } },
      { [defaultClassAnnotation]: "true" },
    ),
  );
  await other.openWith("theirs", { className: "team-b", models: [mist()] });
  await tenant.open();
  await tenant.license(30);
  for (const role of ["edit", "view"])
    await tenant.kubectl.do(
      ...["create", "rolebinding", role, `--clusterrole=tts-operator-${role}`, `--user=${user}`],
    );
  await tenant.kubectl.apply(manifestOf("mine"));
  await tenant.condition("mine", "Ready", "True");
  await eventually("the policy is in effect", async () =>
    (await apply("policy", { api: { service: { type: "NodePort" } } })).stderr.includes("denied request"),
  );
});

afterAll(async () => {
  await Promise.all([tenant.close(), other.close()]);
  await release.system.do("delete", "ttsclass", ...classNames, "--ignore-not-found");
});

function classOf(name: string, spec: Json, annotations: Record<string, string> = {}): object {
  return { apiVersion: api.apiVersion, kind: "TtsClass", metadata: { name, annotations }, spec };
}

function manifestOf(name: string, spec: Json = {}, models: Json[] = [model]): object {
  return ttsDeployment(name, { api: undefined, className: "team-a", license, ...spec, models });
}

/** Applies a `TtsDeployment` with the rights of the tenant. */
function apply(name: string, spec?: Json, models?: Json[]) {
  const args = [`--as=${user}`, "-n", tenant.namespace, "apply", "-f", "-"];
  return run("kubectl", args, JSON.stringify(manifestOf(name, spec, models)));
}

async function refuseAtApply({ what, spec, models, message }: Attempt): Promise<void> {
  const { code, stderr } = await apply("attempt", spec, models);
  expect(stderr, what).toContain(message);
  expect(stderr, what).toMatch(/TtsClass (team-a|team-b|shared) does not allow the spec/);
  expect(code, what).toBe(1);
}

async function refuseByOperator({ what, spec, models, message }: Attempt): Promise<void> {
  expect((await apply("attempt", spec, models)).stderr, what).toBe("");
  await eventually(
    `the condition ClassAccepted contains: ${message}`,
    async () => {
      const conditions = (await tenant.deployment("attempt"))?.status?.conditions ?? [];
      return JSON.stringify(conditions).includes(message);
    },
    { seen: async () => (await tenant.deployment("attempt"))?.status?.conditions },
  );
  expect(await tenant.kubectl.list("pods", "tts.svc.dev/deployment=attempt"), what).toEqual([]);
  await tenant.kubectl.do("delete", "ttsd", "attempt", "--timeout=60s");
}

describe("a tenant that tries to exceed its class", () => {
  it("is refused at every attempt, while the other tenant is served without an interruption", async () => {
    const pods = { mine: await podsOf(tenant), theirs: await podsOf(other) };
    const attempts = async () => {
      for (const attempt of refusedAtApply) await refuseAtApply(attempt);
      for (const attempt of refusedByOperator) await refuseByOperator(attempt);
    };
    const began = performance.now();
    await theirs.uncut("attempts of the tenant", body, attempts, { streams: 4, sockets: 4, listening: true });
    const count = refusedAtApply.length + refusedByOperator.length;
    console.info(
      `${count} of ${count} attempts were refused (${refusedAtApply.length} at apply, ${refusedByOperator.length} by the operator) in ${((performance.now() - began) / 1000).toFixed(0)} s`,
    );
    expect(count).toBeGreaterThanOrEqual(40);
    expect({ mine: await podsOf(tenant), theirs: await podsOf(other) }).toEqual(pods);
    expect((await tenant.kubectl.list("ttsd")).map(({ metadata }) => metadata.name)).toEqual(["mine"]);
    expect((await other.speak("theirs", body)).status).toBe(200);
  });
});

async function podsOf(world: World): Promise<string[]> {
  const pods = await world.kubectl.list("pods", "tts.svc.dev/deployment");
  return pods.map(({ metadata }) => metadata.name).sort();
}
