import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "../cluster/control-plane.ts";
import { installCrds, kubectl, kubectlOrThrow } from "../cluster/kubectl.ts";

/** The CRDs of other products, which their Go modules contain. The operator writes objects of these kinds. */
const products = {
  cloudNativePg: {
    module: "github.com/cloudnative-pg/cloudnative-pg@v1.27.0",
    files: ["config/crd/bases/postgresql.cnpg.io_clusters.yaml"],
  },
  gatewayApi: {
    module: "sigs.k8s.io/gateway-api@v1.4.0",
    files: ["config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"],
  },
  keda: {
    module: "github.com/kedacore/keda/v2@v2.21.0",
    files: ["config/crd/bases/keda.sh_scaledobjects.yaml"],
  },
  prometheusOperator: {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    files: ["servicemonitors", "podmonitors", "prometheusrules"].map(
      (plural) => `example/prometheus-operator-crd/monitoring.coreos.com_${plural}.yaml`,
    ),
  },
};

type Product = keyof typeof products;

const conditions =
  'jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp} {.metadata.finalizers} {.status.conditions}{"\\n"}{end}';

/** Returns the files with the CRDs of a product. The first call downloads them. */
export async function foreignCrdFiles(product: Product): Promise<string[]> {
  const { module, files } = products[product];
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd: "/" });
  const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
  return files.map((file) => join(folder, file));
}

/**
 * Installs the CRDs of a product. The test file must use its own control plane, because CRDs affect all
 * namespaces. Resolves when the API server serves the CRDs.
 */
export async function installForeignKinds(address: ControlPlaneAddress, product: Product): Promise<void> {
  await installCrds(address, await foreignCrdFiles(product));
}

/** Removes the CRDs of a product, which also deletes all their objects. */
export async function removeForeignKinds(address: ControlPlaneAddress, product: Product): Promise<void> {
  const crds = (await foreignCrdFiles(product)).flatMap((file) => ["-f", file]);
  await listOnce(address, crds);
  const { code, stderr } = await kubectl(address, [
    "delete",
    "--ignore-not-found",
    "--timeout=200s",
    ...crds,
  ]);
  if (code === 0) return;
  const remaining = await kubectl(address, ["get", "--ignore-not-found", "-o", conditions, ...crds]);
  throw new Error(
    `the CRDs of ${product} were not removed: ${stderr}remaining CRDs:\n${remaining.stdout}${remaining.stderr}`,
  );
}

/**
 * Lists the objects of each CRD once. The API server opens the storage of a kind at the first list. If the
 * deletion of the CRD causes the first list, the storage is not ready, and the API server retries only after
 * minutes.
 */
async function listOnce(address: ControlPlaneAddress, crds: readonly string[]): Promise<void> {
  const names = await kubectlOrThrow(address, ["get", "--ignore-not-found", "-o", "name", ...crds]);
  for (const crd of names.split("\n").filter((line) => line !== "")) {
    const kind = crd.slice(crd.indexOf("/") + 1);
    await kubectlOrThrow(address, ["get", kind, "--all-namespaces", "-o", "name"]);
  }
}
