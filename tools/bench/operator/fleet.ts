/** TtsDeployments with two pools each, in one namespace. */
import { setTimeout as sleep } from "node:timers/promises";
import { api, children } from "../../../config/contract/names.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { Issuer } from "../../../test/support/server/licenses.ts";
import { inParallel } from "./parallel.ts";

/** One license and one set of API keys for all, as a platform team has them. */
const licenseSecret = "license";
const keysSecret = "keys";
const pollMs = 250;

export class Fleet {
  readonly namespace: string;
  readonly #admin: ClusterClient;
  #size = 0;
  /** Made or changed, and not seen ready since. */
  readonly #unsettled = new Set<string>();

  constructor(admin: ClusterClient, namespace: string) {
    this.#admin = admin;
    this.namespace = namespace;
  }

  get size(): number {
    return this.#size;
  }

  /** The Secrets that all of them share. */
  async open(issuer: Issuer): Promise<void> {
    const limits = { exp: Math.floor(Date.now() / 1000) + 90 * 86_400, maxGpus: 1e6, maxStreams: 1e9 };
    await this.#secret(licenseSecret, { "license.jwt": await issuer.issue(limits) });
    await this.#secret(keysSecret, { "keys.yaml": "keys: []\n" });
  }

  /** Makes more until there are `size`, and waits until every one serves; the operator has to run. */
  async growTo(size: number): Promise<void> {
    const names = Array.from({ length: size }, (_, index) => nameOf(index)).slice(this.#size);
    await inParallel(names, (name) => this.#write(name, 0));
    this.#size = size;
    await this.untilReady();
  }

  /** Until every TtsDeployment is ready in its newest generation. */
  async untilReady(withinMs = 600_000): Promise<void> {
    const deadline = Date.now() + withinMs;
    for (const name of this.#unsettled) {
      for (let found = await this.#read(name); !isReady(found); found = await this.#read(name)) {
        if (Date.now() > deadline)
          throw new Error(`${this.namespace}: ${name} is not ready: ${JSON.stringify(found?.status)}`);
        await sleep(pollMs);
      }
      this.#unsettled.delete(name);
    }
  }

  /** Another image for every pod of one TtsDeployment: five children have to change. */
  async change(index: number, version: number): Promise<{ name: string; children: readonly string[] }> {
    const name = nameOf(index % this.#size);
    await this.#write(name, version);
    const pools = ["mist", "arcana"].map((pool) => children.pool(name, pool));
    return {
      name,
      children: [
        `deployments/${children.apiDeployment(name)}`,
        ...pools.flatMap((pool) => [`ttsmodelpools/${pool}`, `deployments/${pool}`]),
      ],
    };
  }

  async #write(name: string, version: number): Promise<void> {
    this.#unsettled.add(name);
    await this.#admin.apply(ttsDeployment(this.namespace, name, version), { manager: "kubectl" });
  }

  #read(name: string): Promise<KubernetesObject | undefined> {
    const { apiVersion } = api;
    return this.#admin.get({ apiVersion, kind: "TtsDeployment", namespace: this.namespace, name });
  }

  async #secret(name: string, stringData: Record<string, string>): Promise<void> {
    const metadata = { name, namespace: this.namespace };
    await this.#admin.apply(
      { apiVersion: "v1", kind: "Secret", metadata, stringData },
      { manager: "kubectl" },
    );
  }
}

function nameOf(index: number): string {
  return `tts-${String(index).padStart(4, "0")}`;
}

interface Status {
  readonly observedGeneration?: number;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

function isReady(found: KubernetesObject | undefined): boolean {
  const { observedGeneration, conditions } = (found?.status ?? {}) as Status;
  const ready = conditions?.find(({ type }) => type === "Ready");
  return observedGeneration === found?.metadata.generation && ready?.status === "True";
}

function ttsDeployment(namespace: string, name: string, version: number): KubernetesObject {
  const image = `registry.example/svc-tts/server:0.1.${version}`;
  return {
    apiVersion: api.apiVersion,
    kind: "TtsDeployment",
    metadata: { name, namespace },
    spec: {
      license: { secretRef: { name: licenseSecret } },
      api: { image, replicas: 1, keys: { secretRef: { name: keysSecret } } },
      models: [
        { name: "mist", kind: "mist", image, replicas: 1 },
        { name: "arcana", kind: "arcana", image, replicas: 1, accelerator: { count: 1 } },
      ],
    },
  };
}
