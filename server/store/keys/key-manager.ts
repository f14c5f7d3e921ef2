import type { KeyFacts, KeyLimits, Scope } from "./key.ts";

/** Where whoever looks after keys makes, lists and ends them. Every store but a Secret has one. */
export interface KeyManager {
  /** @throws KeyBookError when a key of that name is there already. */
  create(key: string, facts: KeyFacts): Promise<void>;
  /** Those that are good or will come to an end; not the revoked. */
  list(): Promise<readonly ListedKey[]>;
  /** Ends the key with all its secrets, at once. @throws KeyBookError when there is none. */
  revoke(name: string): Promise<void>;
  /**
   * Gives the key one more secret; those before it end after the overlap, or when they would have ended anyway.
   * @throws KeyBookError when there is none of that name, or all its secrets have ended.
   */
  rotate(name: string, key: string, change: KeyRotation): Promise<void>;
  close(): Promise<void>;
}

export interface KeyRotation {
  /** Milliseconds since the epoch: when the secrets so far end. */
  readonly endOfOthers: number;
  /** When the new one ends; as the key so far unless given. */
  readonly expiresAt?: number;
}

export interface ListedKey {
  /** As what it is used for is counted by. */
  readonly id: string;
  readonly name: string;
  readonly team?: string;
  readonly scopes: readonly Scope[];
  readonly limits?: KeyLimits;
  /** Begin of each secret's digest, by which it is told from the others. */
  readonly secrets: readonly {
    readonly digest: string;
    readonly expiresAt?: number;
    readonly lastUsedAt?: number;
  }[];
}

/** Something that whoever gave the command can put right. */
export class KeyManagerError extends Error {
  readonly reason: "missing" | "taken" | "forbidden";

  constructor(reason: KeyManagerError["reason"], message: string) {
    super(message);
    this.name = "KeyBookError";
    this.reason = reason;
  }
}

export function noSuchKey(name: string): KeyManagerError {
  return new KeyManagerError(
    "missing",
    `there is no key named ${name}; svc-tts keys list shows those that there are`,
  );
}

export function adminKey(name: string): KeyManagerError {
  return new KeyManagerError("forbidden", `the key ${name} has the scope admin; an owner may rotate it`);
}

/** When a key ends, by the ends of its secrets; undefined: never. */
export function latestEnd(ends: readonly (number | undefined)[]): number | undefined {
  const latest = Math.max(...ends.map((end) => end ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(latest) ? latest : undefined;
}

export function nameTaken(name: string): KeyManagerError {
  return new KeyManagerError(
    "taken",
    `there is a key named ${name} already; choose another --name, or revoke that one`,
  );
}
