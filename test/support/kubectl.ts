import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlPlaneAddress } from "./control-plane.ts";

export interface KubectlResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs kubectl as the cluster's administrator; `input` goes to its standard input. */
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

/** Standard output; throws what kubectl said when it failed. */
export async function kubectlOrThrow(
  address: ControlPlaneAddress,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await kubectl(address, args, input);
  if (code !== 0) throw new Error(`kubectl ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

export async function installCrds(address: ControlPlaneAddress): Promise<void> {
  const crds = join(import.meta.dirname, "../../crds");
  await kubectlOrThrow(address, ["apply", "--server-side", "-f", crds]);
  await established(address, ["-f", crds]);
}

/** Resolves when the API server takes objects of these CRDs. Not by `kubectl wait`, which fails on a CRD so new that it has no status. */
export async function established(address: ControlPlaneAddress, crds: readonly string[]): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await areEstablished(address, crds))) {
    if (Date.now() > deadline) throw new Error(`these CRDs were not established in time: ${crds.join(" ")}`);
    await delay(50);
  }
}

async function areEstablished(address: ControlPlaneAddress, crds: readonly string[]): Promise<boolean> {
  const found = JSON.parse(await kubectlOrThrow(address, ["get", "-o", "json", ...crds]));
  const items: { status?: { conditions?: { type: string; status: string }[] } }[] = found.items ?? [found];
  return items.every(({ status }) =>
    status?.conditions?.some((one) => one.type === "Established" && one.status === "True"),
  );
}
