import { timingSafeEqual } from "node:crypto";
import { type ApiKey, digestKey, scopes } from "./key.ts";

/** Where API keys are looked up. Every store holds digests only. */
export interface KeyStore {
  /** The key with this SHA-256 digest, expired or not. */
  find(digest: Buffer): Promise<ApiKey | undefined>;
}

export interface KeyEntry extends ApiKey {
  readonly sha256: Buffer;
}

/**
 * Entries by the first digits of their digest. Who guesses at keys learns nothing from the time that a look-up takes: he cannot
 * choose a digest, and the whole of it is compared in constant time.
 */
export class KeyIndex {
  readonly #byDigest = new Map<string, KeyEntry[]>();

  constructor(entries: Iterable<KeyEntry>) {
    for (const entry of entries) {
      const bucket = bucketOf(entry.sha256);
      this.#byDigest.set(bucket, [...(this.#byDigest.get(bucket) ?? []), entry]);
    }
  }

  find(digest: Buffer): KeyEntry | undefined {
    return this.#byDigest.get(bucketOf(digest))?.find(({ sha256 }) => timingSafeEqual(sha256, digest));
  }
}

function bucketOf(digest: Buffer): string {
  return digest.toString("latin1", 0, 8);
}

/** One key given in the clear, for development: it may do everything. */
export function createSingleKeyStore(key: string, name: string): KeyStore {
  const index = new KeyIndex([{ id: name, name, scopes, sha256: digestKey(key) }]);
  return { find: async (digest) => index.find(digest) };
}

/** The first store that knows the key answers. */
export function joinStores(stores: readonly KeyStore[]): KeyStore {
  return {
    async find(digest) {
      for (const store of stores) {
        const key = await store.find(digest);
        if (key) return key;
      }
      return undefined;
    },
  };
}
