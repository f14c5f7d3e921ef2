import { timingSafeEqual } from "node:crypto";
import { type ApiKey, digestKey, scopes } from "./key.ts";

/** Finds API keys. Every store contains only digests. */
export interface KeyStore {
  /** Returns the key with this SHA-256 digest, even if it has expired. */
  find(digest: Buffer): Promise<ApiKey | undefined>;
}

export interface KeyEntry extends ApiKey {
  readonly sha256: Buffer;
}

/**
 * Finds entries by the first bytes of their digest. The time of a look-up reveals nothing useful, because an
 * attacker cannot choose a digest. The whole digest is then compared in constant time.
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

/** Creates a store with a single API key in clear text, for development. The key has every scope. */
export function createSingleKeyStore(key: string, name: string): KeyStore {
  const index = new KeyIndex([{ id: name, name, scopes, sha256: digestKey(key) }]);
  return { find: async (digest) => index.find(digest) };
}

/** Creates a store that searches several stores in order. */
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
