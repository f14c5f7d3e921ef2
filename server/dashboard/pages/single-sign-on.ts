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

/** Redirects to the provider, and the return from it. */
export function addSingleSignOn(scope: FastifyInstance, parts: DashboardContext): void {
  const { singleSignOn, accounts, throttle, strangers, now } = parts;
  if (!singleSignOn) return;
  const { provider, identities, settings } = singleSignOn;
  const { name: cookieName, options } = flowCookie(parts);
  const refuse = async (request: FastifyRequest, reply: FastifyReply, trouble: SignInError) => {
    const { reason, who } = trouble;
    request.log.warn({ reason, source: request.ip }, "a single sign-on was refused");
    if (await strangers.isNoted()) {
      const detail = `by ${settings.name}: ${reason}`;
      await accounts.note({ actor: who, action: "sign-in refused", subject: who, detail });
    }
    return showSignIn(parts, reply.code(trouble.status), trouble.say(localeOf(request).words));
  };
  const telling = async (request: FastifyRequest, reply: FastifyReply, work: () => Promise<FastifyReply>) => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof SignInError) return refuse(request, reply, error);
      throw error;
    }
  };

  scope.get(startPath, (request, reply) =>
    telling(request, reply, async () => {
      await throttle.enterAddress("provider", request.ip);
      const { cookie, flow } = beginFlow(readLink(request), now());
      const target = await provider.begin(flow);
      return reply
        .setCookie(cookieName, cookie, { ...options, maxAge: longestFlowMs / 1000 })
        .redirect(target.href, 303);
    }),
  );
  scope.get(callbackPath, (request, reply) =>
    telling(request, reply, async () => {
      await throttle.enterAddress("provider", request.ip);
      void reply.clearCookie(cookieName, options);
      const flow = readFlow(request.cookies[cookieName] ?? "", now());
      if (!flow) throw notBegunHere();
      const { search } = new URL(request.url, singleSignOn.redirectUri);
      const claims = await provider.finish(new URL(search, singleSignOn.redirectUri), flow);
      const proved = readClaims(claims, settings);
      const admission = await identities.admit(proved, flow.link);
      if (admission.kind === "refused") {
        const who = admission.person?.name ?? proved.name;
        throw new SignInError(403, (words) => words.provider.refused(admission), admission.why, who);
      }
      const { name } = admission.person;
      await accounts.note({ actor: name, action: "signed in", subject: name, detail: `by ${settings.name}` });
      request.log.info({ person: name, source: request.ip }, "a person signed in");
      return signIn(parts, reply, admission.person);
    }),
  );
}

function notBegunHere(): SignInError {
  return new SignInError(
    400,
    (words) => words.provider.notBegunHere,
    "not begun in this browser, over already, or too late",
  );
}

/** SameSite=Lax, because the browser returns from another site. */
function flowCookie(parts: DashboardContext) {
  const { name, options } = sessionCookie(parts);
  return { name: `${name}-sign-in`, options };
}

/** The invitation to use. Another site must not cause its use by a link that a user follows. */
function readLink({ query, headers }: FastifyRequest): string | undefined {
  const { link } = query as { readonly link?: unknown };
  if (typeof link !== "string" || !linkForm.test(link)) return undefined;
  // A followed link has no Origin header; the referrer policy of its page sends the address to this host
  // only.
  if (isFromHere(headers, headers.referer)) return link;
  throw new Refusal("cross_site", (words) => words.provider.openLink);
}
