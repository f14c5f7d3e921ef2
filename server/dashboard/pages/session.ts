import { createHmac, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Role, User } from "../../store/accounts/accounts.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base, type SignedInUser } from "./layout.ts";

export interface SessionContext extends SignedInUser {
  /** ID of the session. */
  readonly secret: string;
}

declare module "fastify" {
  interface FastifyRequest {
    visit: SessionContext | undefined;
  }
}

const secretForm = /^[\w-]{43}$/;

/** The cookie of a session. Scripts cannot read it, and other sites send it only when a link is followed. */
export function sessionCookie({ url }: DashboardContext) {
  const secure = url.startsWith("https:");
  return {
    // Browsers accept a cookie with this prefix only over TLS and from this host.
    name: secure ? "__Host-svc-tts" : "svc-tts",
    options: { httpOnly: true, sameSite: "lax", secure, path: "/" } as const,
  };
}

/** The user of the session in these cookies. */
export async function findSignedIn(
  parts: DashboardContext,
  cookies: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly person: User; readonly secret: string } | undefined> {
  const secret = cookies[sessionCookie(parts).name] ?? "";
  const person = secretForm.test(secret) ? await parts.sessions.find(secret) : undefined;
  return person && { person, secret };
}

/** A hook that accepts signed-in users with one of these roles, and redirects others to the sign-in. */
export function requireSession(parts: DashboardContext, ...roles: readonly Role[]) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const found = await findSignedIn(parts, request.cookies);
    if (!found && isPage(request)) return reply.redirect(`${base}/login`, 303);
    const { person, secret } = requireRole(found, roles);
    request.visit = { person, secret, csrf: csrfOf(secret) };
    return undefined;
  };
}

/** @throws Refusal without a session, or if the user has none of the roles. */
export function requireRole<Found extends { readonly person: User }>(
  found: Found | undefined,
  roles: readonly Role[],
): Found {
  if (!found) throw new Refusal("unauthorized", ({ failures }) => failures.signedOut);
  const { role } = found.person;
  if (roles.includes(role)) return found;
  throw new Refusal("insufficient_scope", ({ failures }) => failures.forRoles(roles, role));
}

/** The signed-in user, who exists behind `requireSession`. */
export function sessionOf({ visit }: FastifyRequest): SessionContext {
  if (!visit) throw new Error("this route does not require a session");
  return visit;
}

function isPage({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes("text/html") ?? false;
}

/** A hook that rejects forms of other sites, by the browser's headers, with or without a session. */
export async function refuseOtherSites({ method, headers }: FastifyRequest): Promise<void> {
  if (method === "GET" || method === "HEAD") return;
  if (isFromHere(headers, headers.origin)) return;
  throw new Refusal("cross_site", ({ failures }) => failures.otherSite);
}

/**
 * Whether a page of this host led here.
 * @param sender the page or its origin, which is used if the browser does not send `Sec-Fetch-Site` (over
 * plain HTTP, or an old browser).
 */
export function isFromHere(headers: FastifyRequest["headers"], sender: string | undefined): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  return headers.host !== undefined && hostOf(sender) === headers.host;
}

function hostOf(origin: string | undefined): string | undefined {
  return origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined;
}

/** A hook after the body: a request that changes data must contain the session's token. */
export async function requireCsrf(request: FastifyRequest): Promise<void> {
  if (request.method === "GET" || request.method === "HEAD") return;
  const given = request.headers["x-csrf-token"] ?? field(request, "csrf");
  const wanted = Buffer.from(sessionOf(request).csrf);
  const shown = Buffer.from(typeof given === "string" ? given : "");
  if (shown.length === wanted.length && timingSafeEqual(shown, wanted)) return;
  throw new Refusal("cross_site", ({ failures }) => failures.earlierSession);
}

function csrfOf(secret: string): string {
  return createHmac("sha256", secret).update("csrf").digest("base64url");
}

/** Returns a field of a form without surrounding spaces, or an empty text if it is missing or repeated. */
export function field({ body }: FastifyRequest, name: string): string {
  return untrimmed(body, name).trim();
}

/** Unchanged, with spaces. */
export function password({ body }: FastifyRequest, name = "password"): string {
  return untrimmed(body, name);
}

function untrimmed(body: unknown, name: string): string {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, name)) return "";
  const value = (body as Record<string, unknown>)[name];
  return typeof value === "string" ? value : "";
}
