import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { ControlPlaneAddress } from "./control-plane.ts";
import { established, kubectl, kubectlOrThrow } from "./kubectl.ts";

/** CRDs of other products, as their Go modules carry them: what objects of ours must satisfy. */
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

/** Files of a product's CRDs, fetched where they are not there yet. */
export async function foreignCrdFiles(product: Product): Promise<string[]> {
  const { module, files } = products[product];
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd: "/" });
  const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
  return files.map((file) => join(folder, file));
}

/**
 * Whether a product is installed is a fact of the whole cluster: who holds it is the only one to change it, while other test files run
 * beside. It is not installed at first, and is removed when it is let go.
 */
export class ForeignKinds implements AsyncDisposable {
  readonly #address: ControlPlaneAddress;
  readonly #product: Product;
  readonly #lock: string;

  private constructor(address: ControlPlaneAddress, product: Product) {
    this.#address = address;
    this.#product = product;
    this.#lock = join(address.directory, `${product}.held`);
  }

  /** Several are to be held in the order of their names, or two files may wait for each other. */
  static async hold(address: ControlPlaneAddress, product: Product): Promise<ForeignKinds> {
    const kinds = new ForeignKinds(address, product);
    while (!(await take(kinds.#lock))) await delay(50);
    return kinds;
  }

  /** Resolves when the API server takes their objects. */
  async install(): Promise<void> {
    const crds = await this.#crds();
    await kubectlOrThrow(this.#address, ["apply", "--server-side", "--force-conflicts", ...crds]);
    await established(this.#address, crds);
  }

  async remove(): Promise<void> {
    const crds = await this.#crds();
    await this.#listOnce(crds);
    const { code, stderr } = await kubectl(this.#address, [
      "delete",
      "--ignore-not-found",
      "--timeout=100s",
      ...crds,
    ]);
    if (code === 0) return;
    const left = await kubectl(this.#address, ["get", "--ignore-not-found", "-o", conditions, ...crds]);
    throw new Error(
      `the CRDs of ${this.#product} were not removed: ${stderr}what is left:\n${left.stdout}${left.stderr}`,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove();
    await rm(this.#lock, { recursive: true });
  }

  /**
   * The API server opens the store of a kind when it is first asked for its objects. Where that is its own list behind a deletion, it finds
   * the store not ready and tries again after ever longer times, minutes in the end.
   */
  async #listOnce(crds: readonly string[]): Promise<void> {
    const found = await kubectlOrThrow(this.#address, ["get", "--ignore-not-found", "-o", "name", ...crds]);
    for (const crd of found.split("\n").filter((line) => line !== "")) {
      const kind = crd.slice(crd.indexOf("/") + 1);
      await kubectlOrThrow(this.#address, ["get", kind, "--all-namespaces", "-o", "name"]);
    }
  }

  async #crds(): Promise<string[]> {
    return (await foreignCrdFiles(this.#product)).flatMap((file) => ["-f", file]);
  }
}

async function take(lock: string): Promise<boolean> {
  try {
    await mkdir(lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
