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

/** Looks at every entry whatever it finds, so that time tells nothing about which digest was near. */
export function findEntry(entries: readonly KeyEntry[], digest: Buffer): KeyEntry | undefined {
  let found: KeyEntry | undefined;
  for (const entry of entries) if (timingSafeEqual(entry.sha256, digest)) found = entry;
  return found;
}

/** One key given in the clear, for development: it may do everything. */
export function createSingleKeyStore(key: string, name: string): KeyStore {
  const entry: KeyEntry = { name, scopes, sha256: digestKey(key) };
  return { find: async (digest) => findEntry([entry], digest) };
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
