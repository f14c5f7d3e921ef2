import { createHash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

export const keyPrefix = "svc_";
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** The length of the random part. 32 base62 characters have 190 bits. */
const secretLength = 32;
/** The number of base62 digits of a CRC-32. */
const checksumLength = 6;

export const scopes = ["tts:write", "oov:read", "admin"] as const;
export type Scope = (typeof scopes)[number];

/** The limits of one key. The server's default replaces an undefined limit. */
export interface KeyLimits {
  readonly requestsPerMinute?: number;
  /** The number of concurrent streams. */
  readonly streams?: number;
}

/** An API key without its secret. */
export interface ApiKey {
  /**
   * The ID, which a rotation does not change. Rate limits, fair queueing and out-of-vocabulary words use this
   * ID.
   */
  readonly id: string;
  readonly name: string;
  readonly team?: string;
  readonly scopes: readonly Scope[];
  readonly limits?: KeyLimits;
  /** The end of the key, in milliseconds since the epoch. */
  readonly expiresAt?: number;
}

/** The properties of a new key. */
export type KeyFacts = Omit<ApiKey, "id">;

/** Creates a new key: `svc_`, 32 random base62 characters, and their checksum. */
export function createKey(): string {
  const secret = Array.from({ length: secretLength }, () => alphabet[randomInt(alphabet.length)]).join("");
  return keyPrefix + secret + checksum(secret);
}

/**
 * Returns whether a text has the form and the checksum of a key. The check detects typing errors without a
 * look-up.
 */
export function isWellFormedKey(text: string): boolean {
  const secret = text.slice(keyPrefix.length, -checksumLength);
  return (
    text.startsWith(keyPrefix) &&
    text.length === keyPrefix.length + secretLength + checksumLength &&
    text.endsWith(checksum(secret))
  );
}

/** Returns the SHA-256 digest of a key. Keys are random, so they need no salt and no slow hash. */
export function digestKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

function checksum(secret: string): string {
  let rest = crc32(secret);
  let digits = "";
  for (let i = 0; i < checksumLength; i++) {
    digits = alphabet[rest % alphabet.length] + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}
