import { createHash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

export const keyPrefix = "svc_";
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 32 base62 characters have 190 bits. */
const secretLength = 32;
/** Enough base62 digits for a CRC-32. */
const checksumLength = 6;

export const scopes = ["tts:write", "oov:read", "admin"] as const;
export type Scope = (typeof scopes)[number];

/** Limits of one key. Undefined means the server's default. */
export interface KeyLimits {
  readonly requestsPerMinute?: number;
  /** Concurrent streams. */
  readonly streams?: number;
}

/** An API key without its secret. */
export interface ApiKey {
  /** Stays the same in a rotation: limits, fair queueing and words are counted by it. */
  readonly id: string;
  readonly name: string;
  readonly team?: string;
  readonly scopes: readonly Scope[];
  readonly limits?: KeyLimits;
  /** Milliseconds since the epoch. */
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
 * Whether the text has the form and checksum of a key, so that typing errors are detected without a look-up.
 */
export function isWellFormedKey(text: string): boolean {
  const secret = text.slice(keyPrefix.length, -checksumLength);
  return (
    text.startsWith(keyPrefix) &&
    text.length === keyPrefix.length + secretLength + checksumLength &&
    text.endsWith(checksum(secret))
  );
}

/** SHA-256. Keys are random enough to need no salt and no slow hash. */
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
