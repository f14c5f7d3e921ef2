import type { FastifyInstance } from "fastify";
import { isLanguage, languageCookie, uiLanguages } from "../languages/locale.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base } from "./layout.ts";
import { field, sessionCookie } from "./session.ts";

const yearSeconds = 365 * 86_400;

/**
 * Adds the route that changes the language. The route works without a session, and stores the language in a
 * cookie.
 */
export function addLanguageSwitch(scope: FastifyInstance, parts: DashboardContext): void {
  const { options } = sessionCookie(parts);
  scope.post("/language", async (request, reply) => {
    const language = field(request, "language");
    if (!isLanguage(language)) {
      throw new Refusal("invalid_request", ({ failures }) => failures.language(Object.keys(uiLanguages)));
    }
    return reply
      .setCookie(languageCookie, language, { ...options, maxAge: yearSeconds })
      .redirect(pathHere(field(request, "back")), 303);
  });
}

/** Returns the target of the redirect. A target outside the dashboard is replaced by the first page. */
function pathHere(back: string): string {
  const here = "http://here";
  if (!URL.canParse(back, here)) return base;
  const { origin, pathname, search } = new URL(back, here);
  const isOurs = origin === here && (pathname === base || pathname.startsWith(`${base}/`));
  return isOurs ? `${pathname}${search}` : base;
}
