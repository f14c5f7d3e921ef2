import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "./control-plane.ts";
import { kubectlOrThrow } from "./kubectl.ts";

/** The Prometheus operator's own CRDs, as its Go module carries them: what a monitor of ours must satisfy. */
const module = "github.com/prometheus-operator/prometheus-operator@v0.85.0";
const plurals = ["servicemonitors", "podmonitors", "prometheusrules"];

async function crdFiles(): Promise<string[]> {
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd: "/" });
  const { Dir } = JSON.parse(stdout) as { Dir: string };
  return plurals.map((plural) =>
    join(Dir, "example/prometheus-operator-crd", `monitoring.coreos.com_${plural}.yaml`),
  );
}

/** Resolves when the API server takes monitors. */
export async function installMonitorCrds(address: ControlPlaneAddress): Promise<void> {
  const files = (await crdFiles()).flatMap((file) => ["-f", file]);
  await kubectlOrThrow(address, ["apply", "--server-side", "--force-conflicts", ...files]);
  const names = plurals.map((plural) => `crd/${plural}.monitoring.coreos.com`);
  await kubectlOrThrow(address, ["wait", "--for=condition=Established", "--timeout=30s", ...names]);
}

export async function removeMonitorCrds(address: ControlPlaneAddress): Promise<void> {
  const names = plurals.map((plural) => `crd/${plural}.monitoring.coreos.com`);
  await kubectlOrThrow(address, ["delete", "--ignore-not-found", "--wait=true", "--timeout=30s", ...names]);
}
