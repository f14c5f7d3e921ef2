import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from "fastify";
import { Failure } from "../../contract/errors.ts";
import { type ApiKey, digestKey, isWellFormedKey, keyPrefix, type Scope } from "../../store/keys/key.ts";
import type { KeyStore } from "../../store/keys/key-store.ts";

const realm = 'Bearer realm="svc-tts"';
/** Far longer than any key. It bounds the cost of hashing. */
const maxTokenLength = 512;

/** Hooks that a request passes before its route, in this order. */
export type Guard = onRequestAsyncHookHandler[];

/** The keys that let callers in. */
export interface Authentication {
  readonly store: KeyStore;
  readonly scope: Scope;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Why a caller is not let in, with the challenge of the answer (RFC 6750). */
class AuthenticationFailure extends Failure {
  readonly challenge: string;

  constructor(code: "unauthorized" | "insufficient_scope", detail: string, challenge: string) {
    super(code, detail);
    this.challenge = challenge;
  }
}

/**
 * A hook that accepts a request with an API key of this scope (RFC 6750). Unknown, malformed and expired keys
 * get the same response.
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
 * The key in a header `Authorization`, or in a field that stands for it.
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
    const detail = "The API key is not valid; check it, or ask for a new one.";
    throw new AuthenticationFailure("unauthorized", detail, `${realm}, error="invalid_token"`);
  }
  if (!key.scopes.includes(scope)) {
    const challenge = `${realm}, error="insufficient_scope", scope="${scope}"`;
    throw new AuthenticationFailure(
      "insufficient_scope",
      `This needs a key with the scope ${scope}.`,
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
 * The server's own keys contain a checksum: a wrong one needs no look-up. Keys of another form are looked up.
 */
function isMistyped(token: string): boolean {
  return token.startsWith(keyPrefix) && !isWellFormedKey(token);
}

function isExpired({ expiresAt }: ApiKey, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}
