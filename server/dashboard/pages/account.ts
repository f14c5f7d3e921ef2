import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ListedSession, sessionId } from "../../store/accounts/sessions.ts";
import { type Content, type Html, html } from "../html/html.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import { problemIn, Refusal } from "../languages/refusal.ts";
import { choosePassword, newPasswordField } from "../sign-in/credentials.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { alert, base, csrfField, sendPage, time } from "./layout.ts";
import { field, password, requireCsrf, requireSession, sessionCookie, sessionOf } from "./session.ts";
import { noteRefused } from "./sign-in.ts";

const place = `${base}/account`;

/**
 * Adds the page of the user's account, with a list of sessions that the user can end, and a form for a new
 * password.
 */
export function addAccountPage(scope: FastifyInstance, parts: DashboardContext): void {
  const { accounts, sessions } = parts;
  const guard = { onRequest: requireSession(parts, "owner", "member", "viewer"), preHandler: requireCsrf };
  const show = async (request: FastifyRequest, reply: FastifyReply, above: Content) => {
    const { person, secret, csrf } = sessionOf(request);
    const locale = localeOf(request);
    const [listed, account] = await Promise.all([sessions.list(person.id), accounts.find(person.name)]);
    const content = html`${above}
${sessionTable(listed, sessionId(secret), csrf, locale)}
${passwordForm(account?.password !== undefined, csrf, locale)}`;
    return sendPage(reply, { title: locale.words.account.title, place, content });
  };

  scope.get("/account", guard, (request, reply) => {
    const { changed } = request.query as { readonly changed?: unknown };
    const note = html`<p class="done" role="status">${localeOf(request).words.account.changed}</p>`;
    return show(request, reply, changed !== undefined && note);
  });
  scope.post("/account/end", guard, async (request, reply) => {
    await sessions.endOne(sessionOf(request).person.id, field(request, "id"));
    return reply.redirect(place, 303);
  });
  scope.post("/account/end-others", guard, async (request, reply) => {
    const { person, secret } = sessionOf(request);
    await sessions.endOthers(person.id, secret);
    return reply.redirect(place, 303);
  });
  scope.post("/account/password", guard, async (request, reply) => {
    const { person } = sessionOf(request);
    try {
      await changePassword(parts, request);
    } catch (error) {
      const problem = problemIn(error, localeOf(request).words);
      if (problem === undefined) throw error;
      return show(request, reply.code(400), alert(problem));
    }
    const { name, options } = sessionCookie(parts);
    return reply.setCookie(name, await sessions.begin(person.id), options).redirect(`${place}?changed`, 303);
  });
}

/**
 * Changes the password. The current password is required, so that a person at an open browser cannot take
 * over the account.
 * @throws Refusal if the current password is wrong, or the new password is not allowed.
 */
async function changePassword(parts: DashboardContext, request: FastifyRequest): Promise<void> {
  const { accounts, passwords, throttle } = parts;
  const { id, name } = sessionOf(request).person;
  await throttle.enter("account", name, request.ip);
  const kept = (await accounts.find(name))?.password;
  const isRight = await passwords.verify(password(request, "current"), kept);
  if (!isRight || kept === undefined) {
    await noteRefused(parts, request, name);
    throw new Refusal("invalid_request", ({ account }) => account.wrong);
  }
  await throttle.passed("account", name, request.ip);
  await accounts.changePassword(id, kept, await choosePassword(passwords, name, password(request)));
}

function sessionTable(listed: readonly ListedSession[], own: string, csrf: string, locale: Locale): Html {
  const { account } = locale.words;
  const rows = listed.map(({ id, begunAt, seenAt }) => {
    const end = html`<form method="post" action="${place}/end">${csrfField(csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">${account.end(locale.time(begunAt))}</button></form>`;
    return html`<tr><th scope="row">${time(begunAt, locale)}</th><td>${time(seenAt, locale)}</td><td>${id === own ? account.thisOne : end}</td></tr>`;
  });
  return html`<h2>${account.sessions}</h2>
<div class="scroll" tabindex="0" role="region" aria-label="${account.sessions}"><table>
<caption>${account.caption}</caption>
<thead><tr><th scope="col">${account.begun}</th><th scope="col">${account.seen}</th><th scope="col">${account.ending}</th></tr></thead>
<tbody>${rows}</tbody></table></div>
${listed.length > 1 && html`<form method="post" action="${place}/end-others">${csrfField(csrf)}<p class="row"><button class="danger">${account.endOthers}</button></p></form>`}`;
}

function passwordForm(hasPassword: boolean, csrf: string, { words }: Locale): Html {
  const { account } = words;
  if (!hasPassword) return html`<h2>${account.password}</h2><p>${account.byProvider}</p>`;
  return html`<h2>${account.password}</h2>
<form method="post" action="${place}/password" class="card narrow">${csrfField(csrf)}
<label for="current">${account.current}</label>
<input id="current" name="current" type="password" required autocomplete="current-password">
${newPasswordField(words, account.next)}
<p class="row"><button>${account.change}</button> <span class="quiet">${account.changeHelp}</span></p>
</form>`;
}
