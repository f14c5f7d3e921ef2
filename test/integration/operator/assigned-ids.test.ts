/**
 * Tests the pods under an admission policy like OpenShift's SecurityContextConstraint `restricted-v2`: it
 * rejects pods that select a user, a group or an fsGroup outside the range of their namespace, and pods that
 * are not restricted. The cluster is not OpenShift, and its policy assigns no IDs.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { TtsDeployment, TtsModelPool } from "../../../operator/facts/observed.ts";
import { deploymentChildren, poolChildren } from "../../../operator/reconcile/children.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { eventually } from "../../support/eventually.ts";
import {
  granted,
  granting,
  now,
  observed,
  serverSettings,
  ttsDeployment,
} from "../../support/operator/observed.ts";

/** A control plane for this file only. */
let plane: ControlPlane;
let client: ClusterClient;
let namespace: string;

const policy = "like-restricted-v2";
const containers =
  "object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])";
const outside = (field: string) => `has(c.${field}) && (c.${field} < 1000650000 || c.${field} > 1000659999)`;
const context = "object.spec.securityContext";
const validations = [
  {
    message: "fsGroup is outside the range of the namespace",
    expression: `!has(${context}) || !(${outside("fsGroup").replaceAll("c.", `${context}.`)})`,
  },
  {
    message: "runAsUser is outside the range of the namespace",
    expression: `!has(${context}) || !(${outside("runAsUser").replaceAll("c.", `${context}.`)})`,
  },
  {
    message: "runAsUser of a container is outside the range of the namespace",
    expression: `(${containers}).all(one, !has(one.securityContext) || [one.securityContext].all(c, !(${outside("runAsUser")})))`,
  },
  {
    message: "containers must drop all capabilities and not escalate",
    expression: `(${containers}).all(one, has(one.securityContext) && has(one.securityContext.capabilities) && one.securityContext.capabilities.drop == ["ALL"] && one.securityContext.allowPrivilegeEscalation == false)`,
  },
];

beforeAll(async () => {
  plane = await controlPlane({ prepare: installCrds });
  client = await adminClient(plane.address);
  namespace = await freshNamespace(client, "assigned");
  const metadata = { name: policy };
  const apiVersion = "admissionregistration.k8s.io/v1";
  const resourceRules = [
    { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
  ];
  const items = [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: { matchConstraints: { resourceRules }, validations },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: policy, validationActions: ["Deny"] },
    },
  ];
  await kubectlOrThrow(
    plane.address,
    ["apply", "-f", "-"],
    JSON.stringify({ apiVersion: "v1", kind: "List", items }),
  );
  const probe = { securityContext: { fsGroup: 1 }, containers: [{ name: "main", image: "probe:1" }] };
  await eventually("the policy", async () => (await admission("probe", probe)) !== "admitted");
});
afterAll(async () => {
  client.close();
  await plane.stop();
});

/** Creates a pod. @returns `admitted` or the message of the API server */
async function admission(name: string, spec: object): Promise<string> {
  try {
    await client.create({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace },
      spec,
    } as KubernetesObject);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  await client.remove({ apiVersion: "v1", kind: "Pod", namespace, name });
  return "admitted";
}

/** Renders the pods of a TtsDeployment with every kind of pod, by name. */
async function podsOf(name: string, fixedUserIds: boolean): Promise<ReadonlyMap<string, object>> {
  const collector = { enabled: true, exporter: { endpoint: "https://otlp.example.com:4317" } };
  const models = [
    { name: "mist", kind: "mist" },
    { name: "arcana", kind: "arcana", engine: { type: "vllm" }, accelerator: { count: 1 } },
  ];
  const settings = { ...serverSettings, server: { ...serverSettings.server, fixedUserIds } };
  const spec = ttsDeployment({ telemetry: { collector } }, models);
  const owner = (await client.create({ ...spec, metadata: { name, namespace } })) as TtsDeployment;
  const { children } = deploymentChildren(observed(owner), granting("mist", "arcana"), settings);
  const all = [...children];
  for (const child of children.filter(({ kind }) => kind === "TtsModelPool")) {
    const pool = (await client.apply(child)) as TtsModelPool;
    const facts = {
      grant: granted,
      licensedCanary: 0,
      now,
      canary: undefined,
      routed: false,
      figures: undefined,
    };
    const workload = { deployment: undefined, pods: [] };
    all.push(...poolChildren({ ...facts, observed: { pool, workload } }, settings).children);
  }
  for (const account of all.filter(({ kind }) => kind === "ServiceAccount")) await client.apply(account);
  const deployments = all.filter(({ kind }) => kind === "Deployment");
  return new Map(
    deployments.map(({ metadata, spec: rendered }) => [
      metadata.name,
      (rendered as { template: { spec: object } }).template.spec,
    ]),
  );
}

describe("a cluster that assigns user IDs", () => {
  it("admits every pod with fixedUserIds: false", async () => {
    const pods = await podsOf("free", false);
    expect([...pods.keys()].sort()).toEqual(["free-api", "free-arcana", "free-mist"]);
    for (const [name, spec] of pods) expect([name, await admission(name, spec)]).toEqual([name, "admitted"]);
  });

  it("rejects every pod with fixed user IDs", async () => {
    for (const [name, spec] of await podsOf("fixed", true))
      expect(await admission(name, spec)).toContain("is outside the range of the namespace");
  });
});
