/** KEDA's own CRD of ScaledObjects, as its Go module carries it: what one of ours must satisfy. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "./control-plane.ts";
import { kubectlOrThrow } from "./kubectl.ts";

const kedaModule = "github.com/kedacore/keda/v2@v2.20.0";

export async function installKedaCrd(address: ControlPlaneAddress): Promise<void> {
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", kedaModule], { cwd: "/" });
  const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
  const crd = join(folder, "config/crd/bases/keda.sh_scaledobjects.yaml");
  await kubectlOrThrow(address, ["apply", "--server-side", "--force-conflicts", "-f", crd]);
  await kubectlOrThrow(address, ["wait", "--for=condition=Established", "--timeout=30s", "-f", crd]);
}

export async function removeKedaCrd(address: ControlPlaneAddress): Promise<void> {
  await kubectlOrThrow(address, ["delete", "crd", "scaledobjects.keda.sh", "--ignore-not-found"]);
}
