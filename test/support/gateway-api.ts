/** The CRDs of the Gateway API, from its Go module. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "./control-plane.ts";
import { kubectlOrThrow } from "./kubectl.ts";

const gatewayModule = "sigs.k8s.io/gateway-api@v1.4.0";

export async function installGatewayApi(address: ControlPlaneAddress): Promise<void> {
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", gatewayModule], {
    cwd: "/",
  });
  const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
  const crd = join(folder, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml");
  await kubectlOrThrow(address, ["apply", "--server-side", "-f", crd]);
  await kubectlOrThrow(address, ["wait", "--for=condition=Established", "--timeout=30s", "-f", crd]);
}

export async function removeGatewayApi(address: ControlPlaneAddress): Promise<void> {
  await kubectlOrThrow(address, [
    "delete",
    "crd",
    "httproutes.gateway.networking.k8s.io",
    "--ignore-not-found",
  ]);
}
