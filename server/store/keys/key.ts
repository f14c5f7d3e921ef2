import { createHash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

export const keyPrefix = "svc_";
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 32 base62 characters are 190 bits. */
const secretLength = 32;
/** Enough base62 digits for a CRC-32. */
const checksumLength = 6;

export const scopes = ["tts:write", "oov:read", "admin"] as const;
export type Scope = (typeof scopes)[number];

/** What one key may use at a time; undefined is whatever the server allows everybody. */
export interface KeyLimits {
  readonly requestsPerMinute?: number;
  /** Streams at once. */
  readonly streams?: number;
}

/** What is known of a key; never the key itself. */
export interface ApiKey {
  /** Stays through a rotation: limits, turns and words are counted by it. */
  readonly id: string;
  readonly name: string;
  readonly team?: string;
  readonly scopes: readonly Scope[];
  readonly limits?: KeyLimits;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

/** What whoever makes a key says of it. */
export type KeyFacts = Omit<ApiKey, "id">;

/** A new key: `svc_`, 32 random base62 characters, and their checksum. */
export function createKey(): string {
  const secret = Array.from({ length: secretLength }, () => alphabet[randomInt(alphabet.length)]).join("");
  return keyPrefix + secret + checksum(secret);
}

/** Whether the text is a key as we make them: typing errors show before any lookup. */
export function isWellFormedKey(text: string): boolean {
  const secret = text.slice(keyPrefix.length, -checksumLength);
  return (
    text.startsWith(keyPrefix) &&
    text.length === keyPrefix.length + secretLength + checksumLength &&
    text.endsWith(checksum(secret))
  );
}

/** SHA-256; keys are random enough that no salt or stretching is needed. */
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
