import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isRole, isTeamName, type ListedUser, roles } from "../../store/accounts/accounts.ts";
import type { CreatedKey } from "../../store/keys/key-creators.ts";
import { type Content, type Html, html } from "../html/html.ts";
import { localeOf } from "../languages/locale.ts";
import { problemIn, Refusal } from "../languages/refusal.ts";
import { readPersonName } from "../sign-in/credentials.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { alert, base, csrfField, sendPage } from "./layout.ts";
import { field, requireCsrf, requireSession, sessionOf } from "./session.ts";

const place = `${base}/people`;

/** Adds the page of the users, which only owners may open. */
export function addUserPages(scope: FastifyInstance, parts: DashboardContext): void {
  const { accounts } = parts;
  const guard = { onRequest: requireSession(parts, "owner"), preHandler: requireCsrf };
  const show = async (request: FastifyRequest, reply: FastifyReply, above: Content, problem?: string) => {
    const [listed, keysOf] = [await accounts.list(), await accounts.madeKeys()];
    const content = html`${above}${table(request, listed, keysOf)}${addForm(request, problem)}`;
    return sendPage(reply, { title: localeOf(request).words.users.title, place, content });
  };
  const linkTo = (secret: string) => `${parts.url}${base}/join?link=${secret}`;
  const actorOf = (request: FastifyRequest) => sessionOf(request).person.name;

  scope.get("/people", guard, (request, reply) => show(request, reply, undefined));
  scope.post("/people", guard, async (request, reply) => {
    try {
      const person = readPerson(request);
      const secret = await accounts.add(actorOf(request), person);
      return await show(request, reply, linkCard(request, person.name, linkTo(secret)));
    } catch (error) {
      const problem = problemIn(error, localeOf(request).words);
      if (problem === undefined) throw error;
      return show(request, reply.code(400), undefined, problem);
    }
  });
  scope.post("/people/link", guard, async (request, reply) => {
    const users = await accounts.list();
    const id = field(request, "id");
    const secret = await accounts.invite(actorOf(request), id);
    const name = users.find((person) => person.id === id)?.name ?? "";
    return show(request, reply, linkCard(request, name, linkTo(secret)));
  });
  scope.post("/people/remove", guard, async (request, reply) => {
    await accounts.remove(actorOf(request), field(request, "id"), field(request, "revokeKeys") === "on");
    return reply.redirect(place, 303);
  });
}

function readPerson(request: FastifyRequest) {
  const name = readPersonName(field(request, "name"));
  const role = field(request, "role");
  const team = field(request, "team");
  if (!isRole(role)) throw new Refusal("invalid_request", ({ users }) => users.roleRule);
  if (team !== "" && !isTeamName(team)) throw new Refusal("invalid_request", ({ users }) => users.teamRule);
  if (team === "" && role !== "owner") {
    throw new Refusal("invalid_request", ({ users }) => users.needsTeam(role));
  }
  return { name, role, ...(team !== "" && { team }) };
}

function linkCard(request: FastifyRequest, name: string, link: string): Html {
  const { users } = localeOf(request).words;
  return html`<div class="done" role="status"><p>${users.giveLink(html`<strong>${name}</strong>`)}</p>
<code class="secret" id="link">${link}</code></div>`;
}

function table(
  request: FastifyRequest,
  listed: readonly ListedUser[],
  keysOf: (id: string) => readonly CreatedKey[],
): Html {
  const { csrf } = sessionOf(request);
  const { users } = localeOf(request).words;
  const revocation = (id: string): Content => {
    const keys = keysOf(id);
    if (keys.length === 0) return undefined;
    const names = keys.map((key) => key.name).join(", ");
    return html`<label class="choice" dir="auto"><input type="checkbox" name="revokeKeys">${users.revokeKeys(names)}</label>`;
  };
  const rows = listed.map(
    ({ id, name, role, team, signsInBy }) => html`<tr>
<th scope="row" dir="auto">${name}</th><td>${users.roles[role]}</td><td dir="auto">${team ?? "–"}</td><td>${users.signsInBy[signsInBy ?? "none"]}</td>
<td><details><summary>${users.changePerson(name)}</summary>
<form method="post" action="${place}/link" class="row">${csrfField(csrf)}<input type="hidden" name="id" value="${id}"><button class="plain">${users.newLink}</button></form>
<form method="post" action="${place}/remove" class="row">${csrfField(csrf)}<input type="hidden" name="id" value="${id}">${revocation(id)}<button class="danger">${users.remove}</button></form>
</details></td></tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${users.title}"><table>
<thead><tr><th scope="col">${users.name}</th><th scope="col">${users.role}</th><th scope="col">${users.team}</th><th scope="col">${users.hasSignedIn}</th><th scope="col">${users.change}</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function addForm(request: FastifyRequest, problem: string | undefined): Html {
  const { users } = localeOf(request).words;
  const options = roles.map(
    (role) =>
      html`<option value="${role}"${role === (field(request, "role") || "member") && html` selected`}>${users.roles[role]}: ${users.roleMeanings[role]}</option>`,
  );
  const kept = (name: string) => (problem === undefined ? "" : field(request, name));
  return html`<h2>${users.add}</h2>
${alert(problem)}
<form method="post" action="${place}" class="card">${csrfField(sessionOf(request).csrf)}
<div class="grid">
<div><label for="name">${users.name}</label><input id="name" name="name" value="${kept("name")}" required maxlength="64" autocomplete="off" autocapitalize="none"></div>
<div><label for="role">${users.role}</label><select id="role" name="role">${options}</select></div>
<div><label for="team">${users.team}</label><input id="team" name="team" value="${kept("team")}" maxlength="64" autocomplete="off" aria-describedby="team-help"><p class="help" id="team-help">${users.teamHelp}</p></div>
</div>
<p class="row"><button>${users.addAndLink}</button></p>
</form>`;
}
