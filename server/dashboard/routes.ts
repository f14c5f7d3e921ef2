import { readFileSync } from "node:fs";
import cookie from "@fastify/cookie";
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { env } from "../../config/contract/names.ts";
import { sendProblem, toFailure } from "../api/respond/problems.ts";
import type { VoiceDirectory } from "../api/upstream/voice-directory.ts";
import { Failure } from "../contract/errors.ts";
import { StoreFailure } from "../store/database/database.ts";
import type { KeyLimits } from "../store/keys/key.ts";
import { html } from "./html/html.ts";
import { englishTexts } from "./languages/english.ts";
import { localeOf } from "./languages/locale.ts";
import { describeFailure, problemIn, Refusal } from "./languages/refusal.ts";
import { addAccountPage } from "./pages/account.ts";
import { addAuditLogPage } from "./pages/audit-log.ts";
import type { DashboardContext } from "./pages/dashboard-context.ts";
import { addKeyPages } from "./pages/keys.ts";
import { addLanguageSwitch } from "./pages/language.ts";
import { base, sendPage } from "./pages/layout.ts";
import { addPlayground, type PlaygroundServices } from "./pages/playground.ts";
import { refuseOtherSites } from "./pages/session.ts";
import { addSignInPages } from "./pages/sign-in.ts";
import { addSingleSignOn } from "./pages/single-sign-on.ts";
import { addUsagePages, type ServerState } from "./pages/usage.ts";
import { addUserPages } from "./pages/users.ts";
import { addWordPages } from "./pages/words.ts";

/** The size of the largest body of a form. */
const formBytes = 64 * 1024;

const assets = {
  "style.css": "text/css; charset=utf-8",
  "icon.svg": "image/svg+xml",
  "playground.js": "text/javascript; charset=utf-8",
  "player.js": "text/javascript; charset=utf-8",
  "live.js": "text/javascript; charset=utf-8",
  "waveform.js": "text/javascript; charset=utf-8",
  "events.js": "text/javascript; charset=utf-8",
  "words.js": "text/javascript; charset=utf-8",
  "copy.js": "text/javascript; charset=utf-8",
  "says.js": "text/javascript; charset=utf-8",
} as const;

/** The content security policy: no content of other sites, no inline scripts, and no frames. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The services of the API tier that the pages use. */
interface DashboardServices extends PlaygroundServices, ServerState {
  readonly prober: ServerState["prober"];
  readonly voices: Pick<VoiceDirectory, "all">;
  /** The limits of keys that have no limits of their own. */
  readonly keyLimits: KeyLimits;
}

/** Registers the pages of the dashboard under `/dashboard`. */
export function addDashboard(app: FastifyInstance, parts: DashboardContext, api: DashboardServices): void {
  const pages: FastifyPluginAsync = async (scope) => {
    await scope.register(cookie);
    scope.removeContentTypeParser("application/json"); // Pages without a session accept only forms.
    await scope.register(formbody, { bodyLimit: formBytes });
    scope.decorateRequest("visit", undefined);
    scope.decorateRequest("locale", undefined);
    scope.addHook("onRequest", protect(parts.url.startsWith("https:")));
    scope.addHook("onRequest", refuseOtherSites(parts));
    scope.addHook("onRequest", warnOfUntrustedProxy());
    scope.setErrorHandler(sendFailure);
    addAssets(scope);
    scope.get("/", async (_request, reply) => reply.redirect(await firstPage(parts), 303));
    addLanguageSwitch(scope, parts);
    addSignInPages(scope, parts);
    addSingleSignOn(scope, parts);
    addAccountPage(scope, parts);
    addKeyPages(scope, parts, api.keyLimits);
    addPlayground(scope, parts, api);
    addWordPages(scope, parts, api.voices);
    addUsagePages(scope, parts, api);
    addUserPages(scope, parts);
    addAuditLogPage(scope, parts);
  };
  void app.register(pages, { prefix: base });
}

async function firstPage({ accounts }: DashboardContext): Promise<string> {
  return (await accounts.isSetUp()) ? `${base}/keys` : `${base}/setup`;
}

function protect(isSecure: boolean) {
  const headers = {
    "content-security-policy": policy,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    ...(isSecure && { "strict-transport-security": "max-age=31536000" }),
  };
  return async (_request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    void reply.headers(headers);
  };
}

/** Creates a hook that warns once about an untrusted proxy. All clients of such a proxy share the sign-in limits. */
function warnOfUntrustedProxy() {
  let isLogged = false;
  return async ({ headers, ip, log, socket }: FastifyRequest): Promise<void> => {
    if (isLogged || headers["x-forwarded-for"] === undefined || ip !== socket.remoteAddress) return;
    isLogged = true;
    log.warn(
      { proxy: ip },
      `a proxy sends X-Forwarded-For, but its address is not in ${env.trustedProxies}; all its clients share the sign-in limits until you add the address`,
    );
  };
}

function addAssets(scope: FastifyInstance): void {
  for (const [name, type] of Object.entries(assets)) {
    const text = readFileSync(new URL(`./assets/${name}`, import.meta.url));
    scope.get(`/assets/${name}`, async (_request, reply) =>
      reply.header("cache-control", "no-cache").type(type).send(text),
    );
  }
}

/**
 * Responds to a failure with a page. For the scripts of the dashboard, the response is a problem document.
 */
function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const failure = toFailure(localize(error));
  const { words } = localeOf(request);
  const message = describeFailure(failure, words);
  if (!(request.headers.accept ?? "").includes("text/html")) {
    const { code, fields, retryAfterSeconds, cause } = failure;
    const options = { fields, cause, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
    return sendProblem(reply, request, new Failure(code, message, options));
  }
  request.failure = failure;
  if (failure.code === "internal")
    request.log.error({ err: failure.cause }, "an unexpected error occurred; report it with this log");
  if (failure.code === "store_unavailable")
    request.log.error({ err: failure.cause }, "the database of the dashboard is not available");
  if (failure.retryAfterSeconds !== undefined)
    void reply.header("retry-after", String(failure.retryAfterSeconds));
  return sendPage(reply.code(failure.status), {
    title: words.failures.title,
    content: html`<p class="alert" role="alert">${message}</p>
<p><a href="${base}/keys">${words.failures.back}</a></p>`,
  });
}

/** Converts an error of the stores to a failure with a message in each language. */
function localize(error: unknown): unknown {
  if (error instanceof StoreFailure) {
    return new Refusal("store_unavailable", ({ failures }) => failures.database, {
      retryAfterSeconds: 5,
      cause: error,
    });
  }
  if (error instanceof Refusal || problemIn(error, englishTexts) === undefined) return error;
  return new Refusal("invalid_request", (words) => problemIn(error, words) ?? "", { cause: error });
}
