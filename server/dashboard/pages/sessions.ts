import type { FastifyInstance } from "fastify";
import { sessionId } from "../../store/sessions.ts";
import { html } from "../html.ts";
import { localeOf } from "../languages/locale.ts";
import { base, csrfField, sendPage, time } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { field, requireCsrf, requireVisit, visitOf } from "../visit.ts";

const place = `${base}/sessions`;

/** Where somebody is signed in, and the end of it: for who lost a machine, or forgot to sign out of one. */
export function addSessionsPage(scope: FastifyInstance, parts: DashboardParts): void {
  const guard = { onRequest: requireVisit(parts, "owner", "member", "viewer"), preHandler: requireCsrf };
  scope.get("/sessions", guard, async (request, reply) => {
    const { person, secret, csrf } = visitOf(request);
    const locale = localeOf(request);
    const { sessions } = locale.words;
    const own = sessionId(secret);
    const listed = await parts.sessions.list(person.id);
    const rows = listed.map(({ id, begunAt, seenAt }) => {
      const begun = time(begunAt, locale);
      const end = html`<form method="post" action="${place}/end">${csrfField(csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">${sessions.end(locale.time(begunAt))}</button></form>`;
      return html`<tr><th scope="row">${begun}</th><td>${time(seenAt, locale)}</td><td>${id === own ? sessions.thisOne : end}</td></tr>`;
    });
    const content = html`<div class="scroll" tabindex="0" role="region" aria-label="${sessions.title}"><table>
<caption>${sessions.caption}</caption>
<thead><tr><th scope="col">${sessions.begun}</th><th scope="col">${sessions.seen}</th><th scope="col">${sessions.ending}</th></tr></thead>
<tbody>${rows}</tbody></table></div>
${listed.length > 1 && html`<form method="post" action="${place}/end-others">${csrfField(csrf)}<p class="row"><button class="danger">${sessions.endOthers}</button></p></form>`}`;
    return sendPage(reply, { title: sessions.title, place, content });
  });
  scope.post("/sessions/end", guard, async (request, reply) => {
    await parts.sessions.endOne(visitOf(request).person.id, field(request, "id"));
    return reply.redirect(place, 303);
  });
  scope.post("/sessions/end-others", guard, async (request, reply) => {
    const { person, secret } = visitOf(request);
    await parts.sessions.endOthers(person.id, secret);
    return reply.redirect(place, 303);
  });
}
