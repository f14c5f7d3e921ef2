import { fastifyCookie } from "@fastify/cookie";
import type { SessionSockets } from "../../api/routes/sockets.ts";
import type { Role, User } from "../../store/accounts/accounts.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base } from "./layout.ts";
import { findSignedIn, isFromHere, requireRole } from "./session.ts";

/** The API's own socket `/ws3`, with a session instead of an API key. */
export const socketPath = `${base}/playground/ws3`;
export const playgroundRoles: readonly Role[] = ["owner", "member"];

/**
 * A browser sends the cookie of the session with an upgrade, which needs no token of a form. Every browser
 * names the page that opens a WebSocket in `Origin` (RFC 6455, section 10.2), so an upgrade without it or
 * from another site is refused.
 */
export function playgroundSocket(parts: DashboardContext): SessionSockets {
  return {
    path: socketPath,
    async authenticate({ headers }) {
      if (headers.origin === undefined || !isFromHere(headers, headers.origin)) {
        throw new Refusal("cross_site", ({ failures }) => failures.otherSite);
      }
      const found = await findSignedIn(parts, fastifyCookie.parse(headers.cookie ?? ""));
      return apiKeyFor(requireRole(found, playgroundRoles).person);
    },
  };
}

/** The identity for limits, queues, logs and words, instead of an API key. */
export function apiKeyFor({ id, name, team }: User): ApiKey {
  return {
    id: `person:${id}`,
    name: `${name} at the dashboard`,
    scopes: [],
    ...(team !== undefined && { team }),
  };
}
