import { createHmac, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Role } from "../../store/accounts/accounts.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base, type SignedInUser } from "./layout.ts";

export interface SessionContext extends SignedInUser {
  /** Of the session. */
  readonly secret: string;
}

declare module "fastify" {
  interface FastifyRequest {
    visit: SessionContext | undefined;
  }
}

const secretForm = /^[\w-]{43}$/;

/** The cookie of a session: out of reach of scripts, and of other sites but for a link that leads here. */
export function sessionCookie({ url }: DashboardContext) {
  const secure = url.startsWith("https:");
  return {
    // browsers take a cookie of this prefix over TLS from this very host alone
    name: secure ? "__Host-svc-tts" : "svc-tts",
    options: { httpOnly: true, sameSite: "lax", secure, path: "/" } as const,
  };
}

/** A hook that lets people in who are signed in and have one of these roles; others are led to the sign-in. */
export function requireSession(parts: DashboardContext, ...roles: readonly Role[]) {
  const { name } = sessionCookie(parts);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const secret = request.cookies[name] ?? "";
    const person = secretForm.test(secret) ? await parts.sessions.find(secret) : undefined;
    if (!person) {
      if (isPage(request)) return reply.redirect(`${base}/login`, 303);
      throw new Refusal("unauthorized", ({ failures }) => failures.signedOut);
    }
    if (!roles.includes(person.role)) {
      throw new Refusal("insufficient_scope", ({ failures }) => failures.forRoles(roles, person.role));
    }
    request.visit = { person, secret, csrf: csrfOf(secret) };
    return undefined;
  };
}

/** Who asks; there is one behind `requireSession`. */
export function sessionOf({ visit }: FastifyRequest): SessionContext {
  if (!visit) throw new Error("this route is open to who is not signed in");
  return visit;
}

function isPage({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes("text/html") ?? false;
}

/** A hook: a browser says from where a form was sent, and forms of other sites are refused, with a session or without. */
export async function refuseOtherSites({ method, headers }: FastifyRequest): Promise<void> {
  if (method === "GET" || method === "HEAD") return;
  if (isFromHere(headers, headers.origin)) return;
  throw new Refusal("cross_site", ({ failures }) => failures.otherSite);
}

/**
 * Whether the browser says that a page of this host led here.
 * @param sender the page or its origin, which counts where the browser does not say it by `Sec-Fetch-Site`: plain HTTP, or an old one.
 */
export function isFromHere(headers: FastifyRequest["headers"], sender: string | undefined): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  return headers.host !== undefined && hostOf(sender) === headers.host;
}

function hostOf(origin: string | undefined): string | undefined {
  return origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined;
}

/** A hook behind the body: what changes something must show the session's own token. */
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

/** A field of a form, without spaces around it; empty where it was not sent, or more than once. */
export function field({ body }: FastifyRequest, name: string): string {
  return untrimmed(body, name).trim();
}

/** As it was typed. */
export function password({ body }: FastifyRequest, name = "password"): string {
  return untrimmed(body, name);
}

function untrimmed(body: unknown, name: string): string {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, name)) return "";
  const value = (body as Record<string, unknown>)[name];
  return typeof value === "string" ? value : "";
}
