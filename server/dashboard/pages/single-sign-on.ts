import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { localeOf } from "../languages/locale.ts";
import { Refusal } from "../languages/refusal.ts";
import { readClaims } from "../oidc/claims.ts";
import { beginFlow, longestFlowMs, readFlow } from "../oidc/flow.ts";
import { SignInError } from "../oidc/sign-in-error.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { isFromHere, sessionCookie } from "./session.ts";
import { callbackPath, showSignIn, signIn, startPath } from "./sign-in.ts";

const linkForm = /^[\w-]{43}$/;

/** Adds the routes of single sign-on: the redirect to the provider, and the callback. */
export function addSingleSignOn(scope: FastifyInstance, parts: DashboardContext): void {
  const { singleSignOn, accounts, throttle, strangers, now } = parts;
  if (!singleSignOn) return;
  const { provider, identities, settings } = singleSignOn;
  const { name: cookieName, options } = flowCookie(parts);
  const refuse = async (request: FastifyRequest, reply: FastifyReply, error: SignInError) => {
    const { reason, who } = error;
    request.log.warn({ reason, source: request.ip }, "a single sign-on attempt was rejected");
    if (await strangers.isNoted()) {
      const detail = `by ${settings.name}: ${reason}`;
      await accounts.note({ actor: who, action: "sign-in refused", subject: who, detail });
    }
    return showSignIn(parts, reply.code(error.status), error.say(localeOf(request).words));
  };
  const withSignInErrors = async (
    request: FastifyRequest,
    reply: FastifyReply,
    work: () => Promise<FastifyReply>,
  ) => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof SignInError) return refuse(request, reply, error);
      throw error;
    }
  };

  scope.get(startPath, (request, reply) =>
    withSignInErrors(request, reply, async () => {
      await throttle.enterAddress("provider", request.ip);
      const { cookie, flow } = beginFlow(readLink(parts, request), now());
      const target = await provider.begin(flow);
      return reply
        .setCookie(cookieName, cookie, { ...options, maxAge: longestFlowMs / 1000 })
        .redirect(target.href, 303);
    }),
  );
  scope.get(callbackPath, (request, reply) =>
    withSignInErrors(request, reply, async () => {
      await throttle.enterAddress("provider", request.ip);
      void reply.clearCookie(cookieName, options);
      const flow = readFlow(request.cookies[cookieName] ?? "", now());
      if (!flow) throw notBegunHere();
      const { search } = new URL(request.url, singleSignOn.redirectUri);
      const claims = await provider.finish(new URL(search, singleSignOn.redirectUri), flow);
      const identity = readClaims(claims, settings);
      const admission = await identities.admit(identity, flow.link);
      if (admission.kind === "refused") {
        const who = admission.person?.name ?? identity.name;
        throw new SignInError(403, (words) => words.provider.refused(admission), admission.why, who);
      }
      const { name } = admission.person;
      await accounts.note({ actor: name, action: "signed in", subject: name, detail: `by ${settings.name}` });
      request.log.info({ person: name, source: request.ip }, "a user signed in");
      return signIn(parts, reply, admission.person);
    }),
  );
}

function notBegunHere(): SignInError {
  return new SignInError(
    400,
    (words) => words.provider.notBegunHere,
    "the sign-in was started in another browser, is already complete, or has expired",
  );
}

/**
 * Returns the cookie of a sign-in in progress. The cookie needs SameSite=Lax, because the provider redirects
 * the browser to this server.
 */
function flowCookie(parts: DashboardContext) {
  const { name, options } = sessionCookie(parts);
  return { name: `${name}-sign-in`, options };
}

/**
 * Returns the secret of the invitation. The function rejects links from other sites, because another site
 * must not make a user accept an invitation.
 */
function readLink(parts: DashboardContext, { query, headers }: FastifyRequest): string | undefined {
  const { link } = query as { readonly link?: unknown };
  if (typeof link !== "string" || !linkForm.test(link)) return undefined;
  // A request that follows a link has no Origin header. Pages of the dashboard send a Referer header to this host.
  if (isFromHere(parts, headers, headers.referer)) return link;
  throw new Refusal("cross_site", (words) => words.provider.openLink);
}
