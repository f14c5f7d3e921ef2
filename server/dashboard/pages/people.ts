import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { AccountError, isTeamName, type ListedPerson, type Role, roles } from "../../store/accounts.ts";
import { type Content, type Html, html } from "../html.ts";
import { alert, base, csrfField, layout } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { readPersonName } from "../people.ts";
import { field, requireCsrf, requireVisit, visitOf } from "../visit.ts";

const place = `${base}/people`;

const roleMeanings: Readonly<Record<Role, string>> = {
  owner: "sees and changes everything",
  member: "makes keys of the team",
  viewer: "sees the team's keys",
};

/** Who may sign in, for owners. */
export function addPeoplePages(scope: FastifyInstance, parts: DashboardParts): void {
  const { accounts } = parts;
  const guard = { onRequest: requireVisit(parts, "owner"), preHandler: requireCsrf };
  const show = async (request: FastifyRequest, reply: FastifyReply, above: Content, problem?: string) => {
    const content = html`${above}${table(request, await accounts.list())}${addForm(request, problem)}`;
    return reply
      .type("text/html; charset=utf-8")
      .send(layout({ title: "People", visitor: request.visit, place, content }));
  };
  const linkTo = (secret: string) => `${parts.url}${base}/join?link=${secret}`;
  const actorOf = (request: FastifyRequest) => visitOf(request).person.name;

  scope.get("/people", guard, (request, reply) => show(request, reply, undefined));
  scope.post("/people", guard, async (request, reply) => {
    try {
      const person = readPerson(request);
      const secret = await accounts.add(actorOf(request), person);
      return await show(request, reply, linkCard(person.name, linkTo(secret)));
    } catch (error) {
      if (!(error instanceof AccountError)) throw error;
      return show(request, reply.code(400), undefined, error.message);
    }
  });
  scope.post("/people/link", guard, async (request, reply) => {
    const people = await accounts.list();
    const id = field(request, "id");
    const secret = await accounts.invite(actorOf(request), id);
    const name = people.find((person) => person.id === id)?.name ?? "";
    return show(request, reply, linkCard(name, linkTo(secret)));
  });
  scope.post("/people/remove", guard, async (request, reply) => {
    await accounts.remove(actorOf(request), field(request, "id"));
    return reply.redirect(place, 303);
  });
}

function readPerson(request: FastifyRequest) {
  const name = readPersonName(field(request, "name"));
  const role = roles.find((one) => one === field(request, "role"));
  const team = field(request, "team");
  if (!role) throw new AccountError(`The role is one of ${roles.join(", ")}.`);
  if (team !== "" && !isTeamName(team)) {
    throw new AccountError("A team is 1 to 64 letters, digits, spaces and ._@:+-, a letter or digit first.");
  }
  if (team === "" && role !== "owner") throw new AccountError(`A ${role} belongs to a team; name it.`);
  return { name, role, ...(team !== "" && { team }) };
}

function linkCard(name: string, link: string): Html {
  return html`<div class="done" role="status"><p>Give this link to <strong>${name}</strong>. It is shown once, and is good for a week or until it is used.</p>
<code class="secret" id="link">${link}</code></div>`;
}

function table(request: FastifyRequest, people: readonly ListedPerson[]): Html {
  const { csrf } = visitOf(request);
  const rows = people.map(
    ({ id, name, role, team, signsInBy }) => html`<tr>
<th scope="row">${name}</th><td>${role}</td><td>${team ?? "–"}</td><td>${signsInBy === undefined ? "not yet" : `by ${signsInBy}`}</td>
<td><details><summary>Change ${name}</summary>
<form method="post" action="${place}/link" class="row">${csrfField(csrf)}<input type="hidden" name="id" value="${id}"><button class="plain">New link to sign in</button></form>
<form method="post" action="${place}/remove" class="row">${csrfField(csrf)}<input type="hidden" name="id" value="${id}"><button class="danger">Remove</button></form>
</details></td></tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="People"><table>
<thead><tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">Team</th><th scope="col">Has signed in</th><th scope="col">Change</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function addForm(request: FastifyRequest, problem: string | undefined): Html {
  const options = roles.map(
    (role) =>
      html`<option value="${role}"${role === (field(request, "role") || "member") && html` selected`}>${role}: ${roleMeanings[role]}</option>`,
  );
  const kept = (name: string) => (problem === undefined ? "" : field(request, name));
  return html`<h2>Add somebody</h2>
${alert(problem)}
<form method="post" action="${place}" class="card">${csrfField(visitOf(request).csrf)}
<div class="grid">
<div><label for="name">Name</label><input id="name" name="name" value="${kept("name")}" required maxlength="64" autocomplete="off" autocapitalize="none"></div>
<div><label for="role">Role</label><select id="role" name="role">${options}</select></div>
<div><label for="team">Team</label><input id="team" name="team" value="${kept("team")}" maxlength="64" autocomplete="off" aria-describedby="team-help"><p class="help" id="team-help">Members and viewers have one.</p></div>
</div>
<p class="row"><button>Add, and make a link</button></p>
</form>`;
}
