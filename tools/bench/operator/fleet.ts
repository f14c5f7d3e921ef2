/** TtsDeployments with two pools each, in one namespace. */
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

/** The common properties of a fleet's TtsDeployments. */
interface FleetShape {
  /** The Secrets of the TtsDeployment with this name. */
  secretsOf(name: string): SecretNames;
  /** Fields of its pools in addition to name, kind, image and accelerator. */
  readonly pool: object;
}

/**
 * One license and one set of API keys for all, as a platform team would have them, and pools with one
 * replica.
 */
const sharedSecrets: FleetShape = {
  secretsOf: () => ({ license: "license", keys: "keys" }),
  pool: { replicas: 1 },
};

/** A separate license and API keys for each, and pools that scale with the demand. */
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
  /** By name of the license's Secret, until both are written. */
  readonly #secrets = new Map<string, Promise<void>>();
  #size = 0;
  /** Names that were created or changed, and are not ready yet. */
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

  /** Creates TtsDeployments up to `size`, and waits until each is ready. The operator must run. */
  async growTo(size: number): Promise<void> {
    const names = Array.from({ length: size }, (_, index) => nameOf(index)).slice(this.#size);
    await inParallel(names, async (name) => {
      await this.#secretsOf(this.#shape.secretsOf(name));
      await this.#write(name, 0);
    });
    this.#size = size;
    await this.untilReady();
  }

  /** Waits until every TtsDeployment is ready in its newest generation. */
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

  /** Changes the image of every pod of one TtsDeployment: five children have to change. */
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

  /** Changes the image of all TtsDeployments, with a canary in each pool first. */
  async tryCanary(index: number, version: number, canary: object): Promise<string> {
    const name = nameOf(index);
    await this.#write(name, version, { rollout: { canary } });
    return name;
  }

  /** Replaces the license by one that ends at this time. */
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
    const given = { secrets: secretsOf(name), pool: { ...pool, ...more } };
    await this.#admin.apply(ttsDeployment(this.namespace, name, version, given), { manager: "kubectl" });
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
