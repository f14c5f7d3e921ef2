import { spawn } from "node:child_process";
import { join } from "node:path";
import { eventually } from "../eventually.ts";
import { clusterRequestOrThrow } from "./cluster-request.ts";
import type { ControlPlaneAddress } from "./control-plane.ts";

export interface KubectlResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs kubectl as the administrator of the cluster. `input` is its standard input. */
export function kubectl(
  address: ControlPlaneAddress,
  args: readonly string[],
  input?: string,
): Promise<KubectlResult> {
  const child = spawn(join(address.binDirectory, "kubectl"), [
    "--kubeconfig",
    address.kubeconfigPath,
    ...args,
  ]);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.end(input ?? "");
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** Returns the standard output of kubectl. Throws its standard error if it fails. */
export async function kubectlOrThrow(
  address: ControlPlaneAddress,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await kubectl(address, args, input);
  if (code !== 0) throw new Error(`kubectl ${args.join(" ")} failed with exit code ${code}: ${stderr}`);
  return stdout;
}

const projectCrds = join(import.meta.dirname, "../../../crds");

/**
 * Installs CRDs, by default the CRDs of svc-tts. Resolves when the API server serves them and lists them in
 * its discovery document.
 */
export async function installCrds(
  address: ControlPlaneAddress,
  files: readonly string[] = [projectCrds],
): Promise<void> {
  const flags = files.flatMap((file) => ["-f", file]);
  const text = await kubectlOrThrow(address, ["apply", "--server-side", "-o", "json", ...flags]);
  const { items = [JSON.parse(text)] } = JSON.parse(text) as { items?: Crd[] };
  await eventually(
    `the API server serves ${items.map(({ metadata }) => metadata.name).join(", ")}`,
    async () => {
      const served = await servedResources(address);
      return items.every(({ metadata }) => served.has(metadata.name));
    },
  );
}

interface Crd {
  readonly metadata: { readonly name: string };
}

/**
 * Returns every resource in the aggregated discovery document as `plural.group`. The garbage collector also
 * reads this document. The document lists a CRD only after the CRD is established.
 */
async function servedResources(address: ControlPlaneAddress): Promise<Set<string>> {
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const { items } = await clusterRequestOrThrow<{ items: Group[] }>(address, { path: "/apis", accept });
  return new Set(
    items.flatMap(({ metadata, versions }) =>
      versions.flatMap(({ resources }) => resources.map(({ resource }) => `${resource}.${metadata.name}`)),
    ),
  );
}

interface Group {
  readonly metadata: { readonly name: string };
  readonly versions: readonly { readonly resources: readonly { readonly resource: string }[] }[];
}
