import type { FastifyInstance } from "fastify";
import { isRole } from "../../store/accounts/accounts.ts";
import type { AuditPlace, ListedEntry } from "../../store/audit.ts";
import { unknownActor } from "../../store/unknown-actor.ts";
import { type Content, html } from "../html/html.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base, sendPage, time } from "./layout.ts";
import { requireSession } from "./session.ts";

const place = `${base}/changes`;
const entriesPerPage = 200;
/** Matches a position in the audit log, which the link to older entries contains. */
const placeForm = /^(\d{1,16})-([0-9a-f-]{36})$/;

/** Adds the page of the audit log, which only owners may open. */
export function addAuditLogPage(scope: FastifyInstance, parts: DashboardContext): void {
  scope.get("/changes", { onRequest: requireSession(parts, "owner") }, async (request, reply) => {
    // The page reads one entry more than it shows, to detect whether older entries exist.
    const newest = await parts.auditLog(entriesPerPage + 1, readPlace(request.query));
    const entries = newest.slice(0, entriesPerPage);
    const last = newest.length > entriesPerPage ? entries.at(-1) : undefined;
    const locale = localeOf(request);
    const { auditLog } = locale.words;
    const rows = entries.map(
      (entry) =>
        html`<tr><td>${time(entry.at, locale)}</td><td>${actorOf(entry, locale)}</td><td>${auditLog.actions[entry.action] ?? entry.action}</td><td>${subjectOf(entry, locale)}</td><td>${detailOf(entry, locale)}</td></tr>`,
    );
    const content = html`<div class="scroll" tabindex="0" role="region" aria-label="${auditLog.title}"><table>
<caption>${auditLog.caption(locale.whole(entriesPerPage))}</caption>
<thead><tr><th scope="col">${auditLog.when}</th><th scope="col">${auditLog.who}</th><th scope="col">${auditLog.what}</th><th scope="col">${auditLog.of}</th><th scope="col">${auditLog.more}</th></tr></thead>
<tbody>${rows}</tbody>
</table></div>
${last && html`<p><a href="${place}?older=${last.at}-${last.id}">${auditLog.older}</a></p>`}`;
    return sendPage(reply, { title: auditLog.title, place, content });
  });
}

function readPlace(query: unknown): AuditPlace | undefined {
  const { older } = query as { readonly older?: unknown };
  const [, at, id] = placeForm.exec(typeof older === "string" ? older : "") ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** Translates the fixed phrases of the stores, which are in English, into the language of the page. */
function actorOf({ actor }: ListedEntry, { words }: Locale): string {
  if (actor === "the command line") return words.auditLog.commandLine;
  if (actor === unknownActor) return words.auditLog.unknownUser;
  const [, key] = /^the key (.+)$/s.exec(actor) ?? [];
  return key === undefined ? actor : words.auditLog.key(key);
}

function subjectOf({ subject }: ListedEntry, { words }: Locale): string {
  if (subject === "keys without a team") return words.words.noTeam;
  return subject === unknownActor ? words.auditLog.unknownUser : subject;
}

function detailOf({ action, detail }: ListedEntry, locale: Locale): Content {
  const { auditLog } = locale.words;
  switch (action) {
    case "person added":
    case "person changed":
      return detail === "the first owner" ? auditLog.firstOwner : roleIn(detail, locale);
    case "words imported": {
      const count = Number.parseInt(detail, 10);
      return auditLog.wordCount(count, locale.whole(count));
    }
    case "key created": {
      const [, scopes, team] = /^([a-z: ]+?) of (.+)$/s.exec(detail) ?? [];
      return scopes === undefined || team === undefined ? detail : auditLog.scopesOf(scopes, team);
    }
    case "signed in":
    case "sign-in refused": {
      // The reason stays in English.
      const [, provider, reason = ""] = /^by (.*?)(: .*)?$/s.exec(detail) ?? [];
      const [, address] = /^from (\S+)$/.exec(detail) ?? [];
      if (address !== undefined) return auditLog.from(address);
      const marked = locale.language === "en" ? reason : html`<span lang="en">${reason}</span>`;
      return provider === undefined ? detail : auditLog.by(provider, marked);
    }
    default:
      return detail;
  }
}

function roleIn(detail: string, { words }: Locale): string {
  const [, role, team, byGroup] = /^(\w+)(?: of (.*?))?(, by a group)?$/s.exec(detail) ?? [];
  if (!isRole(role)) return detail;
  const roleName = words.frame.role(role, team);
  return byGroup === undefined ? roleName : words.auditLog.byGroup(roleName);
}
