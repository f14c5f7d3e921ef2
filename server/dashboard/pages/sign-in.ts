import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyReply } from "fastify";
import { AccountError, type Person } from "../../store/accounts.ts";
import { type Content, type Html, html } from "../html.ts";
import { alert, base, layout } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { choosePassword, newPasswordField, readPersonName } from "../people.ts";
import { field, password, requireCsrf, requireVisit, sessionCookie, visitOf } from "../visit.ts";

/** Below `/dashboard`. */
export const startPath = "/oidc/start";
export const callbackPath = "/oidc/callback";

/** The first owner's page, the sign-in and its end, and the page of a link by which somebody chooses a password. */
export function addSignInPages(scope: FastifyInstance, parts: DashboardParts): void {
  addSetup(scope, parts);
  addLogin(scope, parts);
  addJoin(scope, parts);
}

function addSetup(scope: FastifyInstance, parts: DashboardParts): void {
  const { accounts, passwords, throttle } = parts;
  scope.get("/setup", async (request, reply) => {
    if (await accounts.isSetUp()) return reply.redirect(`${base}/login`, 303);
    const { token } = request.query as { readonly token?: unknown };
    if (typeof token !== "string") return page(reply, "First sign-in", howToSetUp(parts));
    return page(reply, "Make the owner", setupForm({ token, name: "", problem: undefined }));
  });
  scope.post("/setup", async (request, reply) => {
    const [token, name] = [field(request, "token"), field(request, "name")];
    await throttle.enter("the first owner", request.ip);
    try {
      requireToken(token, await parts.setupToken());
      const kept = await choosePassword(passwords, readPersonName(name), password(request));
      const owner = await accounts.setUp(readPersonName(name), kept);
      return await signIn(parts, reply, owner);
    } catch (error) {
      const problem = problemOf(error);
      return page(reply.code(400), "Make the owner", setupForm({ token, name, problem }));
    }
  });
}

/** @throws AccountError when it is not the one. */
function requireToken(given: string, wanted: string | undefined): void {
  const [a, b] = [given, wanted ?? ""].map((text) => createHash("sha256").update(text).digest());
  if (wanted && a && b && timingSafeEqual(a, b)) return;
  throw new AccountError("This link is not the one that the server made; open that one again.");
}

function addLogin(scope: FastifyInstance, parts: DashboardParts): void {
  const { accounts, passwords, sessions, throttle } = parts;
  scope.get("/login", async (_request, reply) => {
    if (!(await accounts.isSetUp())) return reply.redirect(`${base}/setup`, 303);
    return showSignIn(parts, reply, undefined);
  });
  scope.post("/login", async (request, reply) => {
    const name = field(request, "name").toLowerCase().slice(0, 64);
    await throttle.enter(name, request.ip);
    const found = await accounts.find(name);
    if (!(await passwords.verify(password(request), found?.password)) || !found) {
      if (found) await accounts.note({ actor: name, action: "sign-in refused", subject: name });
      const problem = "The name or the password is not right.";
      return page(reply.code(401), "Sign in", loginForm(parts, { name, problem }));
    }
    await throttle.passed(name);
    await accounts.note({ actor: name, action: "signed in", subject: name });
    return signIn(parts, reply, found.person);
  });
  scope.post(
    "/logout",
    { onRequest: requireVisit(parts, "owner", "member", "viewer"), preHandler: requireCsrf },
    async (request, reply) => {
      const { name, options } = sessionCookie(parts);
      await sessions.end(visitOf(request).secret);
      return reply.clearCookie(name, options).redirect(`${base}/login`, 303);
    },
  );
}

function addJoin(scope: FastifyInstance, parts: DashboardParts): void {
  const { accounts, passwords, throttle } = parts;
  scope.get("/join", async (request, reply) => {
    const { link } = request.query as { readonly link?: unknown };
    const person = typeof link === "string" ? await accounts.invited(link) : undefined;
    if (!person || typeof link !== "string") return page(reply.code(404), "Choose a password", deadLink());
    return page(reply, "Choose a password", joinForm(parts, { link, name: person.name, problem: undefined }));
  });
  scope.post("/join", async (request, reply) => {
    const link = field(request, "link");
    await throttle.enter("a link", request.ip);
    const person = await accounts.invited(link);
    if (!person) return page(reply.code(404), "Choose a password", deadLink());
    try {
      const joined = await accounts.join(
        link,
        await choosePassword(passwords, person.name, password(request)),
      );
      return await signIn(parts, reply, joined);
    } catch (error) {
      const problem = problemOf(error);
      return page(
        reply.code(400),
        "Choose a password",
        joinForm(parts, { link, name: person.name, problem }),
      );
    }
  });
}

/** What a person can put right; all else goes on. */
function problemOf(error: unknown): string {
  if (error instanceof AccountError) return error.message;
  throw error;
}

/** Each sign-in has a new session: one that somebody else knew is worth nothing after it. */
export async function signIn(
  parts: DashboardParts,
  reply: FastifyReply,
  person: Person,
): Promise<FastifyReply> {
  const { name, options } = sessionCookie(parts);
  return reply.setCookie(name, await parts.sessions.begin(person.id), options).redirect(`${base}/keys`, 303);
}

export function showSignIn(
  parts: DashboardParts,
  reply: FastifyReply,
  problem: string | undefined,
): FastifyReply {
  return page(reply, "Sign in", loginForm(parts, { name: "", problem }));
}

function page(reply: FastifyReply, title: string, content: Html): FastifyReply {
  const narrow = html`<div class="narrow">${content}</div>`;
  return reply.type("text/html; charset=utf-8").send(layout({ title, content: narrow }));
}

interface FormState {
  readonly name: string;
  readonly problem: string | undefined;
}

function setupForm({ token, name, problem }: FormState & { readonly token: string }): Html {
  return html`${alert(problem)}
<form method="post" action="${base}/setup">
<input type="hidden" name="token" value="${token}">
<label for="name">Your name</label>
<input id="name" name="name" value="${name}" required maxlength="64" autocomplete="username" autocapitalize="none">
${newPasswordField()}
<p class="row"><button>Make the owner</button></p>
</form>`;
}

function loginForm(parts: DashboardParts, { name, problem }: FormState): Html {
  return html`${alert(problem)}
${providerLink(parts, "Sign in with")}
<form method="post" action="${base}/login">
<label for="name">Name</label>
<input id="name" name="name" value="${name}" required maxlength="64" autocomplete="username" autocapitalize="none">
<label for="password">Password</label>
<input id="password" name="password" type="password" required autocomplete="current-password">
<p class="row"><button>Sign in</button></p>
</form>
<p class="quiet">Lost the password? An owner can make you a link to choose another.</p>`;
}

function joinForm(
  parts: DashboardParts,
  { link, name, problem }: FormState & { readonly link: string },
): Html {
  return html`${alert(problem)}
<p>You sign in as <strong>${name}</strong>.</p>
${providerLink(parts, "Sign in from now on with", link)}
<form method="post" action="${base}/join">
<input type="hidden" name="link" value="${link}">
<input type="hidden" name="name" value="${name}" autocomplete="username">
${newPasswordField()}
<p class="row"><button>Choose this password</button></p>
</form>`;
}

/** A link and no form: the policy lets no form lead to another host. */
function providerLink({ singleSignOn }: DashboardParts, words: string, link?: string): Content {
  const query = link === undefined ? "" : `?link=${encodeURIComponent(link)}`;
  return (
    singleSignOn &&
    html`<p><a class="button" href="${base}${startPath}${query}">${words} ${singleSignOn.settings.name}</a></p>`
  );
}

function howToSetUp(parts: DashboardParts): Html {
  return html`<p>Nobody can sign in by a password yet. Open the link that <code>make run</code> printed: it makes the first owner.</p>
<p class="quiet">Elsewhere the link is <code>${base}/setup?token=…</code> with the text of the file that
<code>SVC_TTS_DASHBOARD_SETUP_FILE</code> names.</p>
${providerLink(parts, "Sign in with")}`;
}

function deadLink(): Html {
  return html`<p class="alert" role="alert">This link was used or has ended. Ask an owner for another.</p>`;
}
