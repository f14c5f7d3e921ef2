import type { KeyFacts, KeyLimits, Scope } from "./key.ts";

/** Creates, lists and revokes API keys. Every store except a Secret has a manager. */
export interface KeyManager {
  /**
   * Creates a key.
   * @throws KeyManagerError if a key with that name exists.
   */
  create(key: string, facts: KeyFacts): Promise<void>;
  /** Lists the keys that are neither revoked nor expired. */
  list(): Promise<readonly ListedKey[]>;
  /**
   * Revokes a key with all its secrets immediately.
   * @throws KeyManagerError if the key does not exist.
   */
  revoke(name: string): Promise<void>;
  /**
   * Adds a secret to a key. The previous secrets end after the overlap, or earlier if they expire earlier.
   * @throws KeyManagerError if the key does not exist, or all its secrets have ended.
   */
  rotate(name: string, key: string, change: KeyRotation): Promise<void>;
  close(): Promise<void>;
}

export interface KeyRotation {
  /** The end of the previous secrets, in milliseconds since the epoch. */
  readonly endOfOthers: number;
  /** The end of the new secret. The default is the end of the key. */
  readonly expiresAt?: number;
}

export interface ListedKey {
  /** The ID, by which usage is counted. */
  readonly id: string;
  readonly name: string;
  readonly team?: string;
  readonly scopes: readonly Scope[];
  readonly limits?: KeyLimits;
  /** The secrets. The first digits of a digest identify its secret. */
  readonly secrets: readonly {
    readonly digest: string;
    readonly expiresAt?: number;
    readonly lastUsedAt?: number;
  }[];
}

/** An error that the user of the command can correct. */
export class KeyManagerError extends Error {
  readonly reason: "missing" | "taken" | "forbidden";
  /** The name of the key. */
  readonly keyName: string;

  constructor(reason: KeyManagerError["reason"], keyName: string, message: string) {
    super(message);
    this.name = "KeyManagerError";
    this.reason = reason;
    this.keyName = keyName;
  }
}

export function noSuchKey(name: string): KeyManagerError {
  return new KeyManagerError(
    "missing",
    name,
    `the key ${name} does not exist; list the existing keys with svc-tts keys list`,
  );
}

export function adminKey(name: string): KeyManagerError {
  return new KeyManagerError(
    "forbidden",
    name,
    `the key ${name} has the scope admin; only an owner may rotate it`,
  );
}

/** Returns the end of a key: the latest end of its secrets. Undefined means that the key does not expire. */
export function latestEnd(ends: readonly (number | undefined)[]): number | undefined {
  const latest = Math.max(...ends.map((end) => end ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(latest) ? latest : undefined;
}

export function nameTaken(name: string): KeyManagerError {
  return new KeyManagerError(
    "taken",
    name,
    `a key named ${name} already exists; choose another --name, or revoke the existing key`,
  );
}
