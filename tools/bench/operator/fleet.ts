/** Creates and changes the fleet: TtsDeployments with two pools each, in one namespace. */
import { setTimeout as sleep } from "node:timers/promises";
import { api, children } from "../../../config/contract/names.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { Issuer } from "../../../test/support/server/licenses.ts";
import { inParallel } from "./parallel.ts";

const pollMs = 250;

interface SecretNames {
  readonly license: string;
  readonly keys: string;
}

/** The common properties of the TtsDeployments of a fleet. */
interface FleetShape {
  /** Returns the names of the Secrets of a TtsDeployment. */
  secretsOf(name: string): SecretNames;
  /** Fields of the pools in addition to name, kind, image and accelerator. */
  readonly pool: object;
}

/**
 * All TtsDeployments share one license and one set of API keys, as is common for a platform team. Each pool
 * has one replica.
 */
const sharedSecrets: FleetShape = {
  secretsOf: () => ({ license: "license", keys: "keys" }),
  pool: { replicas: 1 },
};

/** Each TtsDeployment has its own license and API keys. `pool` contains further fields of the pools. */
export const ownSecrets = (pool: object): FleetShape => ({
  secretsOf: (name) => ({ license: `${name}-license`, keys: `${name}-keys` }),
  pool,
});

const dayMs = 86_400_000;

export class Fleet {
  readonly namespace: string;
  readonly #admin: ClusterClient;
  readonly #issuer: Issuer;
  readonly #shape: FleetShape;
  /** The writes of the Secrets, by name of the license Secret. */
  readonly #secrets = new Map<string, Promise<void>>();
  #size = 0;
  /** The names of TtsDeployments that were created or changed, and are not ready yet. */
  readonly #unsettled = new Set<string>();

  constructor(admin: ClusterClient, namespace: string, issuer: Issuer, shape = sharedSecrets) {
    this.#admin = admin;
    this.namespace = namespace;
    this.#issuer = issuer;
    this.#shape = shape;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Creates TtsDeployments until the fleet has `size`, and waits until each is ready. The operator must be
   * running.
   */
  async growTo(size: number): Promise<void> {
    const names = Array.from({ length: size }, (_, index) => nameOf(index)).slice(this.#size);
    await inParallel(names, async (name) => {
      await this.#secretsOf(this.#shape.secretsOf(name));
      await this.#write(name, 0);
    });
    this.#size = size;
    await this.untilReady();
  }

  /** Waits until every TtsDeployment is ready in its latest generation. */
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

  /** Changes the image of all pods of one TtsDeployment. Returns the five children that must change. */
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

  /** Changes the image of one TtsDeployment, with a canary in each pool. */
  async tryCanary(index: number, version: number, canary: object): Promise<string> {
    const name = nameOf(index);
    await this.#write(name, version, { rollout: { canary } });
    return name;
  }

  /** Replaces the license of a TtsDeployment with a license that expires at this time. */
  async limitLicense(index: number, expiresMs: number): Promise<string> {
    const name = nameOf(index);
    await this.#putLicense(this.#shape.secretsOf(name).license, expiresMs);
    return name;
  }

  #secretsOf({ license, keys }: SecretNames): Promise<void> {
    const known = this.#secrets.get(license) ?? this.#makeSecrets(license, keys);
    this.#secrets.set(license, known);
    return known;
  }

  async #makeSecrets(license: string, keys: string): Promise<void> {
    await this.#putLicense(license, Date.now() + 90 * dayMs);
    await this.#secret(keys, { "keys.yaml": "keys: []\n" });
  }

  async #putLicense(name: string, expiresMs: number): Promise<void> {
    const claims = { jti: name, exp: Math.floor(expiresMs / 1000), maxGpus: 1e6, maxStreams: 1e9 };
    await this.#secret(name, { "license.jwt": await this.#issuer.issue(claims) });
  }

  async #write(name: string, version: number, more: object = {}): Promise<void> {
    this.#unsettled.add(name);
    const { secretsOf, pool } = this.#shape;
    const settings = { secrets: secretsOf(name), pool: { ...pool, ...more } };
    await this.#admin.apply(ttsDeployment(this.namespace, name, version, settings), { manager: "kubectl" });
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

function ttsDeployment(
  namespace: string,
  name: string,
  version: number,
  { secrets, pool }: { readonly secrets: SecretNames; readonly pool: object },
): KubernetesObject {
  const image = `registry.example/svc-tts/server:0.1.${version}`;
  return {
    apiVersion: api.apiVersion,
    kind: "TtsDeployment",
    metadata: { name, namespace },
    spec: {
      license: { secretRef: { name: secrets.license } },
      api: { image, replicas: 1, keys: { secretRef: { name: secrets.keys } } },
      models: [
        { name: "mist", kind: "mist", image, ...pool },
        { name: "arcana", kind: "arcana", image, accelerator: { count: 1 }, ...pool },
      ],
    },
  };
}
