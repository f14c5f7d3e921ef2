import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../contract/errors.ts";
import { type ApiKey, digestKey, isWellFormedKey, keyPrefix, type Scope } from "../../store/keys/key.ts";
import type { KeyStore } from "../../store/keys/key-store.ts";

const realm = 'Bearer realm="svc-tts"';
/** Far above any key; bounds the hashing. */
const maxTokenLength = 512;

/**
 * A hook that lets a request in when it carries a key with this scope (RFC 6750). Unknown, malformed and expired keys
 * get one and the same answer.
 * @param now milliseconds since the epoch.
 */
export function requireScope(store: KeyStore, scope: Scope, now: () => number) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const token = readToken(request.headers.authorization);
    if (token === undefined) {
      void reply.header("www-authenticate", realm);
      throw new Failure("unauthorized", "Send your API key in the header Authorization: Bearer <key>.");
    }
    const key = isMistyped(token) ? undefined : await store.find(digestKey(token));
    if (!key || isExpired(key, now())) {
      void reply.header("www-authenticate", `${realm}, error="invalid_token"`);
      throw new Failure("unauthorized", "The API key is not valid; check it, or ask for a new one.");
    }
    if (!key.scopes.includes(scope)) {
      void reply.header("www-authenticate", `${realm}, error="insufficient_scope", scope="${scope}"`);
      throw new Failure("insufficient_scope", `This needs a key with the scope ${scope}.`);
    }
    request.apiKey = key;
  };
}

function readToken(header: string | undefined): string | undefined {
  const token = /^Bearer +([\w~+/.-]+=*) *$/i.exec(header ?? "")?.[1];
  return token !== undefined && token.length <= maxTokenLength ? token : undefined;
}

/** Our own keys carry a checksum: one that does not fit needs no lookup. Keys of another form are looked up. */
function isMistyped(token: string): boolean {
  return token.startsWith(keyPrefix) && !isWellFormedKey(token);
}

function isExpired({ expiresAt }: ApiKey, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}
