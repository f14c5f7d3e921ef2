import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { alreadySetUp, type User } from "../../store/accounts/accounts.ts";
import { unknownActor } from "../../store/unknown-actor.ts";
import { type Content, type Html, html } from "../html/html.ts";
import type { Texts } from "../languages/english.ts";
import { localeOf } from "../languages/locale.ts";
import { problemIn, Refusal } from "../languages/refusal.ts";
import { choosePassword, newPasswordField, readPersonName } from "../sign-in/credentials.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { alert, base, sendPage } from "./layout.ts";
import { field, password, requireCsrf, requireSession, sessionCookie, sessionOf } from "./session.ts";

/** The paths of single sign-on, relative to `/dashboard`. */
export const startPath = "/oidc/start";
export const callbackPath = "/oidc/callback";

/** Adds the pages for the first owner, for the sign-in and the sign-out, and for an invitation link. */
export function addSignInPages(scope: FastifyInstance, parts: DashboardContext): void {
  addSetup(scope, parts);
  addLogin(scope, parts);
  addJoin(scope, parts);
}

function addSetup(scope: FastifyInstance, parts: DashboardContext): void {
  const { accounts, passwords, throttle } = parts;
  scope.get("/setup", async (request, reply) => {
    if (await accounts.isSetUp()) return reply.redirect(`${base}/login`, 303);
    const { token } = request.query as { readonly token?: unknown };
    const { words } = localeOf(request);
    if (typeof token !== "string") return page(reply, words.signIn.first, howToSetUp(parts, words));
    const form = setupForm(words, { token, name: "", problem: undefined });
    return page(reply, words.signIn.makeOwner, form);
  });
  scope.post("/setup", async (request, reply) => {
    const [token, name] = [field(request, "token"), field(request, "name")];
    // After the first owner exists, the token has no effect, so attempts are rejected and not counted.
    const isSetUp = await accounts.isSetUp();
    const expected = await parts.setupToken();
    const isRight = isSameToken(token, expected);
    // No client can guess a long token. Wrong attempts of other clients must therefore not block the user who
    // has the token.
    const isGuessable = (expected ?? "").length < unguessableLength;
    if (!isSetUp && (isGuessable || !isRight)) await throttle.enter("setup", "the first owner", request.ip);
    try {
      if (isSetUp) throw alreadySetUp();
      if (!isRight) throw new Refusal("invalid_request", ({ signIn }) => signIn.wrongLink);
      const kept = await choosePassword(passwords, readPersonName(name), password(request));
      const owner = await accounts.setUp(readPersonName(name), kept);
      return await signIn(parts, reply, owner);
    } catch (error) {
      const { words } = localeOf(request);
      const form = setupForm(words, { token, name, problem: problemOf(error, words) });
      return page(
        reply.code(400),
        words.signIn.makeOwner,
        form,
        `${base}/setup?${new URLSearchParams({ token })}`,
      );
    }
  });
}

/** A random text of this length has at least 64 bits, also if it consists of digits only. */
const unguessableLength = 24;

/** Compares tokens in constant time. */
function isSameToken(given: string, expected: string | undefined): boolean {
  if (!expected) return false;
  const [a, b] = [given, expected].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

function addLogin(scope: FastifyInstance, parts: DashboardContext): void {
  const { accounts, passwords, sessions, throttle } = parts;
  scope.get("/login", async (_request, reply) => {
    if (!(await accounts.isSetUp())) return reply.redirect(`${base}/setup`, 303);
    return showSignIn(parts, reply, undefined);
  });
  scope.post("/login", async (request, reply) => {
    const name = field(request, "name").toLowerCase().slice(0, 64);
    await throttle.enter("login", name, request.ip);
    const account = await accounts.find(name);
    if (!(await passwords.verify(password(request), account?.password)) || !account) {
      const { words } = localeOf(request);
      const form = loginForm(parts, words, { name, problem: words.signIn.wrong });
      page(reply.code(401), words.signIn.signIn, form);
      // The audit log is written after the response. The log contains only some rejections, so the duration
      // of the response would otherwise reveal whether the name exists.
      await noteRefused(parts, request, account && name);
      return reply;
    }
    await throttle.passed("login", name, request.ip);
    await accounts.note({ actor: name, action: "signed in", subject: name });
    request.log.info({ person: name, source: request.ip }, "a user signed in");
    return signIn(parts, reply, account.person);
  });
  scope.post(
    "/logout",
    { onRequest: requireSession(parts, "owner", "member", "viewer"), preHandler: requireCsrf },
    async (request, reply) => {
      const { name, options } = sessionCookie(parts);
      await sessions.end(sessionOf(request).secret);
      return reply.clearCookie(name, options).redirect(`${base}/login`, 303);
    },
  );
}

/**
 * Records a rejected sign-in in the log and the audit log. An unknown name is not recorded, because users
 * sometimes type their password into the field for the name.
 * @param name the name of the account, or undefined if no account has the given name.
 */
export async function noteRefused(
  { accounts, strangers }: DashboardContext,
  { log, ip }: FastifyRequest,
  name: string | undefined,
): Promise<void> {
  log.warn({ source: ip, ...(name !== undefined && { person: name }) }, "a sign-in was rejected");
  if (name === undefined && !(await strangers.isNoted())) return;
  const who = name ?? unknownActor;
  await accounts.note({ actor: who, action: "sign-in refused", subject: who, detail: `from ${ip}` });
}

function addJoin(scope: FastifyInstance, parts: DashboardContext): void {
  const { accounts, passwords, throttle } = parts;
  scope.get("/join", async (request, reply) => {
    const { link } = request.query as { readonly link?: unknown };
    const person = typeof link === "string" ? await accounts.invited(link) : undefined;
    if (!person || typeof link !== "string") return showDeadLink(reply);
    const { words } = localeOf(request);
    const form = joinForm(parts, words, { link, name: person.name, problem: undefined });
    return page(reply, words.signIn.choosePassword, form);
  });
  scope.post("/join", async (request, reply) => {
    const link = field(request, "link");
    const person = await accounts.invited(link);
    if (!person) return showDeadLink(reply);
    await throttle.enter("join", person.id, request.ip);
    try {
      const joined = await accounts.join(
        link,
        await choosePassword(passwords, person.name, password(request)),
      );
      return await signIn(parts, reply, joined);
    } catch (error) {
      const { words } = localeOf(request);
      const form = joinForm(parts, words, { link, name: person.name, problem: problemOf(error, words) });
      const place = `${base}/join?${new URLSearchParams({ link })}`;
      return page(reply.code(400), words.signIn.choosePassword, form, place);
    }
  });
}

/** Returns the message of an error that the user can correct. Other errors are thrown again. */
function problemOf(error: unknown, words: Texts): string {
  const problem = problemIn(error, words);
  if (problem === undefined) throw error;
  return problem;
}

/** Starts a new session for each sign-in, so that an earlier session ID cannot be reused. */
export async function signIn(
  parts: DashboardContext,
  reply: FastifyReply,
  person: User,
): Promise<FastifyReply> {
  const { name, options } = sessionCookie(parts);
  return reply.setCookie(name, await parts.sessions.begin(person.id), options).redirect(`${base}/keys`, 303);
}

export function showSignIn(
  parts: DashboardContext,
  reply: FastifyReply,
  problem: string | undefined,
): FastifyReply {
  const { words } = localeOf(reply.request);
  return page(reply, words.signIn.signIn, loginForm(parts, words, { name: "", problem }));
}

/**
 * Sends a page with a form.
 * @param place the address of the page.
 */
function page(reply: FastifyReply, title: string, content: Html, place = base): FastifyReply {
  return sendPage(reply, { title, place, content: html`<div class="narrow">${content}</div>` });
}

function showDeadLink(reply: FastifyReply): FastifyReply {
  const { words } = localeOf(reply.request);
  return page(reply.code(404), words.signIn.choosePassword, html`${alert(words.signIn.deadLink)}`);
}

interface FormState {
  readonly name: string;
  readonly problem: string | undefined;
}

function setupForm(words: Texts, { token, name, problem }: FormState & { readonly token: string }): Html {
  return html`${alert(problem)}
<form method="post" action="${base}/setup">
<input type="hidden" name="token" value="${token}">
<label for="name">${words.signIn.yourName}</label>
<input id="name" name="name" value="${name}" required maxlength="64" autocomplete="username" autocapitalize="none">
${newPasswordField(words)}
<p class="row"><button>${words.signIn.makeOwner}</button></p>
</form>`;
}

function loginForm(parts: DashboardContext, words: Texts, { name, problem }: FormState): Html {
  return html`${alert(problem)}
${providerLink(parts, words.signIn.signInWith)}
<form method="post" action="${base}/login">
<label for="name">${words.signIn.name}</label>
<input id="name" name="name" value="${name}" required maxlength="64" autocomplete="username" autocapitalize="none">
<label for="password">${words.signIn.password}</label>
<input id="password" name="password" type="password" required autocomplete="current-password">
<p class="row"><button>${words.signIn.signIn}</button></p>
</form>
<p class="quiet">${words.signIn.lost}</p>`;
}

function joinForm(
  parts: DashboardContext,
  words: Texts,
  { link, name, problem }: FormState & { readonly link: string },
): Html {
  return html`${alert(problem)}
<p>${words.signIn.signInAs(html`<strong>${name}</strong>`)}</p>
${providerLink(parts, words.signIn.fromNowOnWith, link)}
<form method="post" action="${base}/join">
<input type="hidden" name="link" value="${link}">
<input type="hidden" name="name" value="${name}" autocomplete="username">
${newPasswordField(words)}
<p class="row"><button>${words.signIn.chooseThis}</button></p>
</form>`;
}

/**
 * Returns a link to the provider. The content security policy blocks forms that redirect to another host, so
 * the function returns no form.
 */
function providerLink(
  { singleSignOn }: DashboardContext,
  say: (provider: string) => string,
  link?: string,
): Content {
  const query = link === undefined ? "" : `?link=${encodeURIComponent(link)}`;
  return (
    singleSignOn &&
    html`<p><a class="button" href="${base}${startPath}${query}">${say(singleSignOn.settings.name)}</a></p>`
  );
}

function howToSetUp(parts: DashboardContext, words: Texts): Html {
  const link = html`<code>${base}/setup?token=…</code>`;
  return html`<p>${words.signIn.nobodyYet(html`<code>make run</code>`)}</p>
<p class="quiet">${words.signIn.elsewhere(link, html`<code>SVC_TTS_DASHBOARD_SETUP_FILE</code>`)}</p>
${providerLink(parts, words.signIn.signInWith)}`;
}
