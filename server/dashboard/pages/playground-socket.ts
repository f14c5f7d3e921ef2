import { fastifyCookie } from "@fastify/cookie";
import type { SessionSockets } from "../../api/routes/sockets.ts";
import type { Role, User } from "../../store/accounts/accounts.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base } from "./layout.ts";
import { findSignedIn, isFromHere, requireRole } from "./session.ts";

/** The path of the WebSocket `/ws3` for the playground, which requires a session instead of an API key. */
export const socketPath = `${base}/playground/ws3`;
export const playgroundRoles: readonly Role[] = ["owner", "member"];

/**
 * Authenticates upgrades of the playground with the session cookie. An upgrade has no CSRF token. The server
 * therefore rejects upgrades without `Origin`, and upgrades from other sites (RFC 6455, section 10.2).
 */
export function playgroundSocket(parts: DashboardContext): SessionSockets {
  return {
    path: socketPath,
    async authenticate({ headers }) {
      if (headers.origin === undefined || !isFromHere(parts, headers, headers.origin)) {
        throw new Refusal("cross_site", ({ failures }) => failures.otherSite);
      }
      const found = await findSignedIn(parts, fastifyCookie.parse(headers.cookie ?? ""));
      return apiKeyFor(requireRole(found, playgroundRoles).person);
    },
  };
}

/** Returns an API key that represents the user in limits, queues, logs and the records of words. */
export function apiKeyFor({ id, name, team }: User): ApiKey {
  return {
    id: `person:${id}`,
    name: `${name} at the dashboard`,
    scopes: [],
    ...(team !== undefined && { team }),
  };
}
