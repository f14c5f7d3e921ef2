import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../contract/errors.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { Quotas, RateState } from "./quotas.ts";

/**
 * Creates a hook that counts the request for the rate limit of its API key, and adds the number of remaining
 * requests to the headers of the response. The hook must run after the authentication.
 *
 * The three headers follow drafts 3 to 6 of the IETF's RateLimit header fields, because clients support these
 * drafts. Later drafts define a structured header `RateLimit`, and its syntax changes between drafts.
 */
export function limitRate(quotas: Pick<Quotas, "count">) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const state = request.apiKey && (await quotas.count(request.apiKey));
    if (!state) return;
    void reply.headers({
      "ratelimit-limit": String(state.limit),
      "ratelimit-remaining": String(state.remaining),
      "ratelimit-reset": String(state.resetSeconds),
    });
    refuseExceeded(state);
  };
}

/**
 * Counts one synthesis on a socket as a request of the API key.
 * @throws Failure `rate_limited`.
 */
export async function countSynthesis(quotas: Pick<Quotas, "count">, apiKey: ApiKey): Promise<void> {
  const state = await quotas.count(apiKey);
  if (state) refuseExceeded(state);
}

function refuseExceeded({ isExceeded, limit, resetSeconds }: RateState): void {
  if (!isExceeded) return;
  throw new Failure(
    "rate_limited",
    `This key has reached its limit of ${limit} requests per minute; try again in ${resetSeconds} s.`,
    { retryAfterSeconds: resetSeconds },
  );
}
