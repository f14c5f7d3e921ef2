import { afterAll, beforeAll, expect, it } from "vitest";
import { rulesOf } from "../../../operator/permissions.ts";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import type { ProxiedRequest } from "../../support/fault-proxy.ts";
import { installForeignKinds } from "../../support/foreign-kinds.ts";
import { installCrds } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

let plane: ControlPlane;

beforeAll(async () => {
  plane = await controlPlane({
    controllerManager: true,
    prepare: async (address) => {
      await installCrds(address);
      for (const product of ["gatewayApi", "keda", "prometheusOperator"] as const)
        await installForeignKinds(address, product);
    },
  });
});

afterAll(() => plane.stop());

const hostnames = ["tts.example.com"];
const everything = {
  api: { keys: { secretRef: { name: "license" } }, route: { hostnames, ingress: {} } },
  networkPolicy: { enabled: true },
  telemetry: { serviceMonitor: { enabled: true } },
};
/** It has metrics of its own, for which there is a PodMonitor. */
const engine = { type: "vllm" };
const byGateway = { api: { route: { hostnames, gatewayRef: { name: "public" } } } };
const nothingMore = { networkPolicy: {}, availability: { podDisruptionBudget: { enabled: false } } };

/** Everything that the operator ever does: it leads, makes all children, takes some back, prunes a pool and tells of it. */
async function doEverything(house: OperatorHouse): Promise<void> {
  await house.stopOperator();
  await house.startOperator({ elected: true });
  const scaling = { maxReplicas: 2 };
  await house.ready(everything, [
    { name: "mist", kind: "mist", scaling: { ...scaling, provider: "HPA" } },
    { name: "second", kind: "arcana", engine, scaling: { ...scaling, provider: "KEDA" } },
  ]);
  for (const kind of ["ServiceMonitor", "PodMonitor"]) await house.mustGet(kind, "demo");
  await house.mustGet("HorizontalPodAutoscaler", "demo-mist");
  await house.mustGet("ScaledObject", "demo-second");
  const byHand = (name: string, kind: string) => ({ name, kind, replicas: 1 });
  await house.putDeployment(everything, [byHand("mist", "mist"), byHand("second", "arcana")]);
  const left = async (kind: string, name: string) => (await house.get(kind, name)) !== undefined;
  await house.until(async () => !(await left("HorizontalPodAutoscaler", "demo-mist")), "the end of the HPA");
  await house.until(async () => !(await left("ScaledObject", "demo-second")), "the end of the ScaledObject");
  await house.putDeployment(byGateway);
  await house.until(async () => (await house.get("HTTPRoute", "demo-api")) !== undefined, "the route");
  await house.putDeployment(nothingMore);
  const gone = async (kind: string, name: string) => (await house.get(kind, name)) === undefined;
  await house.until(() => gone("TtsModelPool", "demo-second"), "the pruning");
  await house.until(() => gone("NetworkPolicy", "demo-api"), "the end of the policy");
  await house.until(() => gone("HTTPRoute", "demo-api"), "the end of the route");
  await house.until(() => gone("Ingress", "demo-api"), "the end of the ingress");
  await house.until(() => gone("ServiceMonitor", "demo"), "the end of the service monitor");
  await house.until(() => gone("PodMonitor", "demo"), "the end of the pod monitor");
  await house.until(() => gone("PodDisruptionBudget", "demo-mist"), "the end of the budget");
  await house.until(async () => {
    const events = await house.admin.list("Event", { namespace: house.namespace });
    return events.some(({ reason }) => reason === "Serving");
  }, "the event");
}

it.each([
  ["cluster-wide", true],
  ["in the namespaces that it watches", false],
])("the chart's own role is enough for everything the operator does, %s", async (_where, clusterWide) => {
  await using house = await OperatorHouse.open({ clusterWide }, plane.address);
  await doEverything(house);
  expect(house.lines.filter((line) => /forbidden/i.test(line))).toEqual([]);
});

/** As RBAC asks: `verb resource`, of the path of a request. */
function asked({ method, path, watch }: ProxiedRequest): string {
  const [, root, ...rest] = path.split("/");
  const parts = rest.slice(root === "api" ? 1 : 2);
  const [resource, name, subresource] = parts[0] === "namespaces" ? parts.slice(2) : parts;
  const verbs: Record<string, string> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };
  const reading = name === undefined ? "list" : "get";
  const verb = verbs[method] ?? (watch ? "watch" : reading);
  return `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`}`;
}

it("the chart's role holds nothing that the operator does not use", async () => {
  await using house = await OperatorHouse.open({}, plane.address);
  await doEverything(house);
  // gives the Lease back
  await house.stopOperator();
  const used = new Set(house.proxy.requests.map(asked));
  // server-side apply of what is not there yet is a patch on the wire, and needs create
  for (const request of [...used])
    if (request.startsWith("patch ")) used.add(request.replace("patch", "create"));
  const held = [...rulesOf("workload"), ...rulesOf("own")].flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );
  expect(held.filter((permission) => !used.has(permission)).sort()).toEqual([
    // looked at by admission, not by a request: see operator/permissions.ts
    "get endpointslices",
    "list endpointslices",
    // before a pool shrinks under streams: test/integration/operator/scaling.test.ts
    "patch pods",
    "update ttsdeployments/finalizers",
    "update ttsmodelpools/finalizers",
    "watch endpointslices",
  ]);
});

it("the chart's role deletes pools and what may be switched off: the rest goes with its owner", () => {
  const rules = [...rulesOf("workload"), ...rulesOf("own")];
  const deletable = rules.filter(({ verbs }) => verbs.includes("delete"));
  expect(deletable.flatMap(({ resources }) => resources)).toEqual([
    "ttsmodelpools",
    "networkpolicies",
    "ingresses",
    "httproutes",
    "horizontalpodautoscalers",
    "poddisruptionbudgets",
    "scaledobjects",
    "servicemonitors",
    "podmonitors",
  ]);
});

it("the chart's role lets nobody list Secrets", async () => {
  await using house = await OperatorHouse.open({}, plane.address);
  const answer = await fetch(new URL(`/api/v1/namespaces/${house.namespace}/secrets`, house.proxy.server));
  expect(answer.status).toBe(403);
});
