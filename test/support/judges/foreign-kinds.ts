import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "../cluster/control-plane.ts";
import { installCrds, kubectl, kubectlOrThrow } from "../cluster/kubectl.ts";

/** The CRDs of other products, from their Go modules. Objects that the operator writes must satisfy them. */
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

/** Returns the files of a product's CRDs, and fetches them on first use. */
export async function foreignCrdFiles(product: Product): Promise<string[]> {
  const { module, files } = products[product];
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd: "/" });
  const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
  return files.map((file) => join(folder, file));
}

/**
 * Installs the CRDs of a product in a control plane of the test file, because CRDs are visible in every
 * namespace. Resolves when the API server serves their objects.
 */
export async function installForeignKinds(address: ControlPlaneAddress, product: Product): Promise<void> {
  await installCrds(address, await foreignCrdFiles(product));
}

/** Removes the CRDs of a product and every object of their kinds. */
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
  const left = await kubectl(address, ["get", "--ignore-not-found", "-o", conditions, ...crds]);
  throw new Error(
    `the CRDs of ${product} were not removed: ${stderr}what is left:\n${left.stdout}${left.stderr}`,
  );
}

/**
 * The API server opens the store of a kind when a client first lists its objects. If the first list is the
 * one of the deletion itself, the store is not ready, and the API server retries after delays of minutes.
 */
async function listOnce(address: ControlPlaneAddress, crds: readonly string[]): Promise<void> {
  const found = await kubectlOrThrow(address, ["get", "--ignore-not-found", "-o", "name", ...crds]);
  for (const crd of found.split("\n").filter((line) => line !== "")) {
    const kind = crd.slice(crd.indexOf("/") + 1);
    await kubectlOrThrow(address, ["get", kind, "--all-namespaces", "-o", "name"]);
  }
}
