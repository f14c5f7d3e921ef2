/** The chart's own roles, applied: the operator of the tests may do what the operator of a cluster may, and nothing else. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "./control-plane.ts";
import { kubectlOrThrow } from "./kubectl.ts";

const chart = join(import.meta.dirname, "../../charts/tts-operator");
const release = "op";
const placeholder = "a-namespace-to-be-named";

/** Rendered once a process and scope: helm takes a second. */
const rendered = new Map<string, Promise<string>>();

/**
 * Applies the chart's ServiceAccount and roles in a namespace, bound there alone or, with `clusterWide`, everywhere.
 * @returns a token of that ServiceAccount, good for an hour
 */
export async function chartsRole(
  address: ControlPlaneAddress,
  namespace: string,
  { clusterWide = false } = {},
): Promise<string> {
  const text = await render(address, clusterWide);
  const manifest = text
    .replaceAll(placeholder, namespace)
    .replaceAll(`name: ${release}-`, `name: ${namespace}-`)
    // a test of the chart looks for, and deletes, whatever releases have beyond their namespaces
    .replaceAll("app.kubernetes.io/name: tts-operator", "app.kubernetes.io/name: operator-of-a-test");
  await kubectlOrThrow(address, ["apply", "-n", namespace, "-f", "-"], manifest);
  const account = `${namespace}-tts-operator`;
  return (await kubectlOrThrow(address, ["create", "token", account, "-n", namespace])).trim();
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
  return stdout;
}
