import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readKeyFacts, readRotation } from "../../api/key-request.ts";
import { inBook } from "../../api/routes/keys.ts";
import { Failure } from "../../errors.ts";
import { createKey, type Scope, scopes } from "../../store/key.ts";
import type { ListedKey } from "../../store/key-book.ts";
import { type DayOfUsage, dayOf } from "../../store/usage.ts";
import { type Content, type Html, html } from "../html.ts";
import { alert, base, csrfField, layout, time, type Visitor } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { field, requireCsrf, requireVisit, visitOf } from "../visit.ts";

const place = `${base}/keys`;
const dayMs = 86_400_000;
/** Days of use that are shown, today included. */
const shownDays = 30;

const scopeMeanings: Readonly<Record<Scope, string>> = {
  "tts:write": "speak",
  "oov:read": "read unknown words",
  admin: "manage keys",
};

/** The token page: keys are made, rotated and revoked; what they are is shown once. */
export function addKeyPages(scope: FastifyInstance, parts: DashboardParts): void {
  const look = { onRequest: requireVisit(parts, "owner", "member", "viewer") };
  const change = { onRequest: requireVisit(parts, "owner", "member"), preHandler: requireCsrf };
  const bookOf = (request: FastifyRequest) => {
    const { person } = visitOf(request);
    return parts.keyBook({ actor: person.name, team: person.role === "owner" ? undefined : teamOf(request) });
  };
  const show = async (request: FastifyRequest, reply: FastifyReply, above: Content, form?: FormState) => {
    const listed = await inBook(bookOf(request), (book) => book.list());
    const today = dayOf(parts.now());
    const used = await parts.usage(dayOf(parts.now() - (shownDays - 1) * dayMs));
    const visitor = visitOf(request);
    const mayChange = visitor.person.role !== "viewer";
    const content = html`${above}
${keyTable({ visitor, keys: listed, used, today, mayChange })}
${mayChange && createForm(visitor, form)}`;
    return reply
      .type("text/html; charset=utf-8")
      .send(layout({ title: "API keys", visitor, place, content }));
  };

  scope.get("/keys", look, (request, reply) => show(request, reply, undefined));
  scope.post("/keys", change, async (request, reply) => {
    const { person } = visitOf(request);
    try {
      const team = person.role === "owner" ? undefined : teamOf(request);
      const facts = readKeyFacts(keyFields(request), parts.now(), team);
      const key = createKey();
      await inBook(bookOf(request), (book) => book.create(key, facts));
      return await show(request, reply, secretCard(`The key ${facts.name} is made.`, key, parts.url));
    } catch (error) {
      if (!isForPerson(error)) throw error;
      return show(request, reply.code(error.status), undefined, { request, failure: error });
    }
  });
  scope.post("/keys/rotate", change, async (request, reply) => {
    const rotation = readRotation({ overlapHours: wholeNumber(field(request, "overlapHours")) }, parts.now());
    const [key, name] = [createKey(), field(request, "key")];
    await inBook(bookOf(request), (book) => book.rotate(name, key, rotation));
    const ends = html`The one before it ends ${time(rotation.endOfOthers)} UTC.`;
    return show(
      request,
      reply,
      secretCard(html`The key ${name} has this new secret. ${ends}`, key, parts.url),
    );
  });
  scope.post("/keys/revoke", change, async (request, reply) => {
    await inBook(bookOf(request), (book) => book.revoke(field(request, "key")));
    return reply.redirect(place, 303);
  });
}

/** Only an owner may be without a team, and sees all. */
function teamOf(request: FastifyRequest): string {
  return visitOf(request).person.team ?? "";
}

interface FormState {
  readonly request: FastifyRequest;
  readonly failure: Failure;
}

function isForPerson(error: unknown): error is Failure {
  return error instanceof Failure && (error.code === "invalid_request" || error.code === "name_taken");
}

/** The form as the REST interface takes it. */
function keyFields(request: FastifyRequest): object {
  const given = (name: string) => field(request, name) || undefined;
  const { scopes: chosen } = (request.body ?? {}) as { readonly scopes?: unknown };
  return {
    name: given("name"),
    scopes: chosen === undefined ? [] : [chosen].flat(),
    team: given("team"),
    expiresAt: given("expiresAt"),
    requestsPerMinute: wholeNumber(field(request, "requestsPerMinute")),
    streams: wholeNumber(field(request, "streams")),
  };
}

function wholeNumber(text: string): number | string | undefined {
  if (text === "") return undefined;
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

function secretCard(said: Content, key: string, url: string): Html {
  const body = `{"speaker":"alan","modelId":"mist","text":"It works."}`;
  const curl = `curl -sS ${url}/v1/svc-tts -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'Accept: audio/wav' -d '${body}' -o speech.wav`;
  return html`<div class="done" role="status"><p>${said} Copy it now: it is not shown again.</p>
<code class="secret" id="new-key">${key}</code>
<details><summary>Try it in a terminal</summary><pre tabindex="0">${curl}</pre></details></div>`;
}

interface TableFacts {
  readonly visitor: Visitor;
  readonly keys: readonly ListedKey[];
  readonly used: readonly DayOfUsage[];
  readonly today: string;
  readonly mayChange: boolean;
}

function keyTable({ visitor, keys, used, today, mayChange }: TableFacts): Html {
  if (keys.length === 0) return html`<p class="card">There are no keys yet.</p>`;
  const rows = keys.map((key) => {
    const days = used.filter(({ keyId }) => keyId === key.id);
    return html`<tr>
<th scope="row">${key.name}</th>
<td>${key.team ?? "–"}</td>
<td>${key.scopes.map((scope) => scopeMeanings[scope]).join(", ")}</td>
<td>${limitsOf(key)}</td>
<td>${key.secrets.map(({ digest, expiresAt }) => html`<div><code>${digest}</code> ${expiresAt === undefined ? "no end" : html`ends ${time(expiresAt)}`}</div>`)}</td>
<td>${time(lastUse(key))}</td>
<td>${usageOf(days, today)}</td>
${mayChange && html`<td>${changeForms(visitor, key)}</td>`}
</tr>`;
  });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="API keys"><table>
<caption>Times are UTC. A revoked key is refused everywhere within 5 seconds.</caption>
<thead><tr><th scope="col">Name</th><th scope="col">Team</th><th scope="col">May</th><th scope="col">Limits</th><th scope="col">Secrets (digests)</th><th scope="col">Last used</th><th scope="col">Use</th>${mayChange && html`<th scope="col">Change</th>`}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function limitsOf({ limits }: ListedKey): Content {
  const { requestsPerMinute, streams } = limits ?? {};
  if (requestsPerMinute === undefined && streams === undefined) return "the server's";
  return [
    requestsPerMinute !== undefined && html`<div>${requestsPerMinute} a minute</div>`,
    streams !== undefined && html`<div>${streams} at once</div>`,
  ];
}

function lastUse({ secrets }: ListedKey): number | undefined {
  const times = secrets.map(({ lastUsedAt }) => lastUsedAt ?? 0);
  const latest = Math.max(0, ...times);
  return latest === 0 ? undefined : latest;
}

function usageOf(days: readonly DayOfUsage[], today: string): Content {
  if (days.length === 0) return "–";
  const now = days.find(({ day }) => day === today)?.requests ?? 0;
  const rows = days
    .toReversed()
    .map(
      ({ day, requests, failed, audioMs }) =>
        html`<tr><th scope="row">${day}</th><td class="number">${requests}</td><td class="number">${failed}</td><td class="number">${(audioMs / 1000).toFixed(1)}</td></tr>`,
    );
  return html`<details><summary>${now} today</summary><table>
<caption>The last ${shownDays} days</caption>
<thead><tr><th scope="col">Day</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Audio, s</th></tr></thead>
<tbody>${rows}</tbody></table></details>`;
}

function changeForms({ csrf }: Visitor, { id, name }: ListedKey): Html {
  const hidden = html`${csrfField(csrf)}<input type="hidden" name="key" value="${name}">`;
  return html`<details><summary>Change ${name}</summary>
<form method="post" action="${place}/rotate">${hidden}
<label for="overlap-${id}">Hours that the old secret still counts</label>
<input id="overlap-${id}" name="overlapHours" type="number" min="0" max="8784" value="24" required>
<p class="row"><button class="plain">Rotate</button></p></form>
<form method="post" action="${place}/revoke">${hidden}<p class="row"><button class="danger">Revoke now</button></p></form>
</details>`;
}

function createForm({ csrf, person }: Visitor, state: FormState | undefined): Html {
  const kept = (name: string) => (state ? field(state.request, name) : "");
  const wrong = (name: string) => state?.failure.fields.find(({ pointer }) => pointer === `/${name}`)?.detail;
  const input = (name: string, label: string, attributes: Html, help?: string) => {
    const problem = wrong(name);
    const described = problem !== undefined || help !== undefined;
    return html`<div><label for="${name}">${label}</label>
<input id="${name}" name="${name}" value="${kept(name)}" ${attributes}${described && html` aria-describedby="${name}-help"`}${problem !== undefined && html` aria-invalid="true"`}>
${described && html`<p id="${name}-help" class="${problem === undefined ? "help" : "wrong"}">${problem ?? help}</p>`}</div>`;
  };
  const choices = scopes.map(
    (scope) =>
      html`<label class="choice"><input type="checkbox" name="scopes" value="${scope}"${isChosen(state, scope) && html` checked`}>${scopeMeanings[scope]} <code>${scope}</code></label>`,
  );
  const wrongScopes = wrong("scopes");
  return html`<h2>Make a key</h2>
${alert(state?.failure.message)}
<form method="post" action="${place}" class="card">${csrfField(csrf)}
<div class="grid">
${input("name", "Name", html`required maxlength="64" autocomplete="off"`, "Who or what uses it.")}
${person.role === "owner" && input("team", "Team", html`maxlength="64" autocomplete="off"`, "Whose unknown words it shares; may be empty.")}
${input("expiresAt", "Ends on", html`type="date"`, "Never, where it is empty.")}
${input("requestsPerMinute", "Requests a minute", html`type="number" min="1" max="1000000"`, "The server's own limit, where it is empty.")}
${input("streams", "Streams at once", html`type="number" min="1" max="1000000"`, "The server's own limit, where it is empty.")}
</div>
<fieldset><legend>May</legend>${choices}${wrongScopes !== undefined && html`<p class="wrong">${wrongScopes}</p>`}</fieldset>
<p class="row"><button>Make the key</button></p>
</form>`;
}

function isChosen(state: FormState | undefined, scope: Scope): boolean {
  if (!state) return scope === "tts:write";
  const { scopes: chosen } = state.request.body as { readonly scopes?: unknown };
  return [chosen].flat().includes(scope);
}
