import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from "fastify";
import { Failure } from "../../contract/errors.ts";
import { type ApiKey, digestKey, isWellFormedKey, keyPrefix, type Scope } from "../../store/keys/key.ts";
import type { KeyStore } from "../../store/keys/key-store.ts";

const realm = 'Bearer realm="svc-tts"';
/** Longer tokens are rejected, which bounds the cost of hashing. API keys are shorter. */
const maxTokenLength = 512;

/** Hooks that run before the handler of a route, in this order. */
export type Guard = onRequestAsyncHookHandler[];

/** The store of API keys, and the scope that the key must have. */
export interface Authentication {
  readonly store: KeyStore;
  readonly scope: Scope;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

/** A failed authentication, with the challenge for the header `WWW-Authenticate` (RFC 6750). */
class AuthenticationFailure extends Failure {
  readonly challenge: string;

  constructor(code: "unauthorized" | "insufficient_scope", detail: string, challenge: string) {
    super(code, detail);
    this.challenge = challenge;
  }
}

/**
 * Creates a hook that requires an API key with this scope (RFC 6750). The response is the same for unknown, malformed
 * and expired keys.
 * @param now milliseconds since the epoch.
 */
export function requireScope(store: KeyStore, scope: Scope, now: () => number) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    try {
      request.apiKey = await authenticate({ store, scope, now }, request.headers.authorization);
    } catch (error) {
      if (error instanceof AuthenticationFailure) void reply.header("www-authenticate", error.challenge);
      throw error;
    }
  };
}

/**
 * Returns the API key of a header `Authorization`. On a socket of v1, a message may contain the value of the
 * header.
 * @throws Failure `unauthorized` or `insufficient_scope`.
 */
export async function authenticate(
  { store, scope, now }: Authentication,
  header: string | undefined,
): Promise<ApiKey> {
  const token = readToken(header);
  if (token === undefined) {
    const detail = "Send your API key in the header Authorization: Bearer <key>.";
    throw new AuthenticationFailure("unauthorized", detail, realm);
  }
  const key = isMistyped(token) ? undefined : await store.find(digestKey(token));
  if (!key || isExpired(key, now())) {
    const detail = "The API key is unknown, expired or revoked; check the key, or request a new one.";
    throw new AuthenticationFailure("unauthorized", detail, `${realm}, error="invalid_token"`);
  }
  if (!key.scopes.includes(scope)) {
    const challenge = `${realm}, error="insufficient_scope", scope="${scope}"`;
    throw new AuthenticationFailure(
      "insufficient_scope",
      `The API key lacks the scope ${scope}; use a key with this scope.`,
      challenge,
    );
  }
  return key;
}

function readToken(header: string | undefined): string | undefined {
  const token = /^Bearer +([\w~+/.-]+=*) *$/i.exec(header ?? "")?.[1];
  return token !== undefined && token.length <= maxTokenLength ? token : undefined;
}

/**
 * Returns whether the token has the prefix of the server's own keys but a wrong checksum. The server rejects
 * this token without reading the store.
 */
function isMistyped(token: string): boolean {
  return token.startsWith(keyPrefix) && !isWellFormedKey(token);
}

function isExpired({ expiresAt }: ApiKey, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}
