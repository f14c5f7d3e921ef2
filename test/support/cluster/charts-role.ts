/**
 * Applies the roles of the chart, so that the operator in a test has exactly the permissions of an installed
 * operator.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { clusterRequestOrThrow } from "./cluster-request.ts";
import type { ControlPlaneAddress } from "./control-plane.ts";

const chart = join(import.meta.dirname, "../../../charts/tts-operator");
const release = "op";
const placeholder = "a-namespace-to-be-named";

/**
 * The rendered manifests by watched namespace, as a JSON array. They are rendered and parsed once in each
 * process, because helm takes a second.
 */
const rendered = new Map<string, Promise<string>>();

/**
 * Applies the ServiceAccount and the roles of the chart in a namespace. The roles are bound in this
 * namespace, or in the whole cluster with `clusterWide`.
 *
 * @returns a token of the ServiceAccount that is valid for an hour
 */
export async function chartsRole(
  address: ControlPlaneAddress,
  namespace: string,
  { clusterWide = false } = {},
): Promise<string> {
  const text = (await render(address, clusterWide))
    .replaceAll(placeholder, namespace)
    .replaceAll(`"name":"${release}-`, `"name":"${namespace}-`);
  const objects = JSON.parse(text) as KubernetesObject[];
  await Promise.all(objects.map((object) => apply(address, object, namespace)));
  const account = `${namespace}-tts-operator`;
  const { status } = await clusterRequestOrThrow<{ status: { token: string } }>(address, {
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} },
  });
  return status.token;
}

async function apply(
  address: ControlPlaneAddress,
  object: KubernetesObject,
  namespace: string,
): Promise<void> {
  const { apiVersion, kind, metadata } = object;
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = kind.startsWith("Cluster") ? "" : `/namespaces/${metadata.namespace ?? namespace}`;
  const path = `${root}${scope}/${kind.toLowerCase()}s/${metadata.name}?fieldManager=test&force=true`;
  await clusterRequestOrThrow(address, {
    method: "PATCH",
    path,
    body: object,
    type: "application/apply-patch+yaml",
  });
}

function render(address: ControlPlaneAddress, clusterWide: boolean): Promise<string> {
  const watched = clusterWide ? "" : placeholder;
  const known = rendered.get(watched) ?? template(address, watched);
  rendered.set(watched, known);
  return known;
}

async function template({ binDirectory }: ControlPlaneAddress, watched: string): Promise<string> {
  const { stdout } = await promisify(execFile)(join(binDirectory, "helm"), [
    ...["template", release, chart, "--namespace", placeholder, "--kube-version", "1.36.3"],
    ...(watched === "" ? [] : ["--set", `watchNamespaces={${watched}}`]),
    ...["--show-only", "templates/rbac.yaml", "--show-only", "templates/serviceaccount.yaml"],
  ]);
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as KubernetesObject | null);
  return JSON.stringify(objects.filter((object) => object !== null));
}
