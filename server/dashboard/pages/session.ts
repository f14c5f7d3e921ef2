import { createHmac, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Role, User } from "../../store/accounts/accounts.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base, type SignedInUser } from "./layout.ts";

export interface SessionContext extends SignedInUser {
  /** The secret of the session, which the cookie contains. */
  readonly secret: string;
}

declare module "fastify" {
  interface FastifyRequest {
    visit: SessionContext | undefined;
  }
}

const secretForm = /^[\w-]{43}$/;

/**
 * Returns the name and the options of the session cookie. Scripts cannot read the cookie. A request from another site
 * includes the cookie only if the user follows a link.
 */
export function sessionCookie({ url }: DashboardContext) {
  const secure = url.startsWith("https:");
  return {
    // Browsers accept a cookie with this prefix only over TLS and from this host.
    name: secure ? "__Host-svc-tts" : "svc-tts",
    options: { httpOnly: true, sameSite: "lax", secure, path: "/" } as const,
  };
}

/** Returns the user of the session in these cookies, and the secret of the session. */
export async function findSignedIn(
  parts: DashboardContext,
  cookies: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly person: User; readonly secret: string } | undefined> {
  const secret = cookies[sessionCookie(parts).name] ?? "";
  const person = secretForm.test(secret) ? await parts.sessions.find(secret) : undefined;
  return person && { person, secret };
}

/**
 * Creates a hook that requires a user with one of these roles. Without a session, the hook redirects pages to
 * the sign-in.
 */
export function requireSession(parts: DashboardContext, ...roles: readonly Role[]) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const found = await findSignedIn(parts, request.cookies);
    if (!found && isPage(request)) return reply.redirect(`${base}/login`, 303);
    const { person, secret } = requireRole(found, roles);
    request.visit = { person, secret, csrf: csrfOf(secret) };
    return undefined;
  };
}

/**
 * Requires a user with one of the roles. @throws Refusal without a session, or if the user has another role.
 */
export function requireRole<Found extends { readonly person: User }>(
  found: Found | undefined,
  roles: readonly Role[],
): Found {
  if (!found) throw new Refusal("unauthorized", ({ failures }) => failures.signedOut);
  const { role } = found.person;
  if (roles.includes(role)) return found;
  throw new Refusal("insufficient_scope", ({ failures }) => failures.forRoles(roles, role));
}

/** Returns the signed-in user of a request. The route must use `requireSession`. */
export function sessionOf({ visit }: FastifyRequest): SessionContext {
  if (!visit) throw new Error("the route must use requireSession before it reads the session");
  return visit;
}

function isPage({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes("text/html") ?? false;
}

/**
 * Creates a hook that rejects forms of other sites. The hook uses only headers of the browser, so it also
 * protects pages without a session.
 */
export function refuseOtherSites(parts: Pick<DashboardContext, "url">) {
  return async ({ method, headers }: FastifyRequest): Promise<void> => {
    if (method === "GET" || method === "HEAD") return;
    if (isFromHere(parts, headers, headers.origin)) return;
    throw new Refusal("cross_site", ({ failures }) => failures.otherSite);
  };
}

/**
 * Returns whether a page of the dashboard sent the request.
 * @param url the URL of the dashboard. The origin of a page is compared with this URL too, because a proxy
 * may replace the header `Host`.
 * @param sender the URL or the origin of the page. The function uses this value if the browser does not send
 * `Sec-Fetch-Site`. Browsers omit this header over plain HTTP, and some browsers also for a WebSocket.
 */
export function isFromHere(
  { url }: Pick<DashboardContext, "url">,
  headers: FastifyRequest["headers"],
  sender: string | undefined,
): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  if (sender === undefined || !URL.canParse(sender)) return false;
  const { origin, host } = new URL(sender);
  return host === headers.host || origin === new URL(url).origin;
}

/**
 * Requires the CSRF token of the session in requests that change data. This hook must run after the body is
 * parsed.
 */
export async function requireCsrf(request: FastifyRequest): Promise<void> {
  if (request.method === "GET" || request.method === "HEAD") return;
  const token = request.headers["x-csrf-token"] ?? field(request, "csrf");
  const expected = Buffer.from(sessionOf(request).csrf);
  const actual = Buffer.from(typeof token === "string" ? token : "");
  if (actual.length === expected.length && timingSafeEqual(actual, expected)) return;
  throw new Refusal("cross_site", ({ failures }) => failures.earlierSession);
}

function csrfOf(secret: string): string {
  return createHmac("sha256", secret).update("csrf").digest("base64url");
}

/** Returns a form field without surrounding spaces. A missing or repeated field becomes an empty string. */
export function field({ body }: FastifyRequest, name: string): string {
  return untrimmed(body, name).trim();
}

/** Returns the password field unchanged, including spaces. */
export function password({ body }: FastifyRequest, name = "password"): string {
  return untrimmed(body, name);
}

function untrimmed(body: unknown, name: string): string {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, name)) return "";
  const value = (body as Record<string, unknown>)[name];
  return typeof value === "string" ? value : "";
}
