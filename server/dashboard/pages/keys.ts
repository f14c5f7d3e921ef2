import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readKeyFacts, readRotation } from "../../api/request/key-request.ts";
import { inBook } from "../../api/routes/keys.ts";
import { Failure } from "../../contract/errors.ts";
import { createKey, type KeyLimits, type Scope, scopes } from "../../store/keys/key.ts";
import type { ListedKey } from "../../store/keys/key-manager.ts";
import { type DayOfUsage, dayOf } from "../../store/usage.ts";
import { type Content, type Html, html } from "../html/html.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import { describeFailure } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { alert, base, csrfField, type SignedInUser, sendPage, time } from "./layout.ts";
import { field, requireCsrf, requireSession, sessionOf } from "./session.ts";

const place = `${base}/keys`;
const dayMs = 86_400_000;
/** The number of days in the table of usage, including today. */
const shownDays = 30;

/** Adds the page on which users create, rotate and revoke API keys. A secret is shown only once. */
export function addKeyPages(scope: FastifyInstance, parts: DashboardContext, keyLimits: KeyLimits): void {
  const look = { onRequest: requireSession(parts, "owner", "member", "viewer") };
  const change = { onRequest: requireSession(parts, "owner", "member"), preHandler: requireCsrf };
  const bookOf = (request: FastifyRequest) => {
    const { person } = sessionOf(request);
    const isOwner = person.role === "owner";
    const team = isOwner ? undefined : teamOf(request);
    return parts.keyBook({
      actor: person.name,
      team,
      maker: `person:${person.id}`,
      withoutAdmin: !isOwner,
    });
  };
  const show = async (request: FastifyRequest, reply: FastifyReply, above: Content, form?: FormState) => {
    const listed = await inBook(bookOf(request), (book) => book.list());
    const today = dayOf(parts.now());
    const used = await parts.usage(dayOf(parts.now() - (shownDays - 1) * dayMs));
    const visitor = sessionOf(request);
    const locale = localeOf(request);
    const mayChange = visitor.person.role !== "viewer";
    const content = html`${above}
${keyTable({ visitor, locale, keys: listed, used, today, mayChange })}
${mayChange && createForm(visitor, locale, form)}`;
    return sendPage(reply, { title: locale.words.keys.title, place, content });
  };

  scope.get("/keys", look, (request, reply) => show(request, reply, undefined));
  scope.post("/keys", change, async (request, reply) => {
    const { person } = sessionOf(request);
    try {
      const team = person.role === "owner" ? undefined : teamOf(request);
      const facts = readKeyFacts(keyFields(request), parts.now(), team, keyLimits);
      const key = createKey();
      await inBook(bookOf(request), (book) => book.create(key, facts));
      const locale = localeOf(request);
      const message = locale.words.keys.made(facts.name);
      return await show(request, reply, secretCard(locale, message, key, parts.url));
    } catch (error) {
      if (!isForPerson(error)) throw error;
      return show(request, reply.code(error.status), undefined, { request, failure: error });
    }
  });
  scope.post("/keys/rotate", change, async (request, reply) => {
    const rotation = readRotation({ overlapHours: wholeNumber(field(request, "overlapHours")) }, parts.now());
    const [key, name] = [createKey(), field(request, "key")];
    await inBook(bookOf(request), (book) => book.rotate(name, key, rotation));
    const locale = localeOf(request);
    const message = locale.words.keys.rotated(name, time(rotation.endOfOthers, locale));
    return show(request, reply, secretCard(locale, message, key, parts.url));
  });
  scope.post("/keys/revoke", change, async (request, reply) => {
    await inBook(bookOf(request), (book) => book.revoke(field(request, "key")));
    return reply.redirect(place, 303);
  });
}

/** Returns the team of a user. Every user except an owner has a team. */
function teamOf(request: FastifyRequest): string {
  return sessionOf(request).person.team ?? "";
}

interface FormState {
  readonly request: FastifyRequest;
  readonly failure: Failure;
}

function isForPerson(error: unknown): error is Failure {
  return error instanceof Failure && (error.code === "invalid_request" || error.code === "name_taken");
}

/** Converts the form to the body of the REST API. */
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

function secretCard({ words }: Locale, message: Content, key: string, url: string): Html {
  const body = `{"speaker":"alan","modelId":"mist","text":"It works."}`;
  const curl = `curl -sS ${url}/v1/svc-tts -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'Accept: audio/wav' -d '${body}' -o speech.wav`;
  return html`<div class="done" role="status"><p>${message} ${words.keys.copyNow}</p>
<code class="secret" id="new-key">${key}</code>
<details><summary>${words.keys.tryIt}</summary><pre tabindex="0">${curl}</pre></details></div>`;
}

interface TableFacts {
  readonly visitor: SignedInUser;
  readonly locale: Locale;
  readonly keys: readonly ListedKey[];
  readonly used: readonly DayOfUsage[];
  readonly today: string;
  readonly mayChange: boolean;
}

function keyTable({ visitor, locale, keys: listed, used, today, mayChange }: TableFacts): Html {
  const { keys } = locale.words;
  if (listed.length === 0) return html`<p class="card">${keys.none}</p>`;
  const rows = listed.map((key) => {
    const days = used.filter(({ keyId }) => keyId === key.id);
    return html`<tr>
<th scope="row" dir="auto">${key.name}</th>
<td dir="auto">${key.team ?? "–"}</td>
<td>${key.scopes.map((scope) => keys.scopes[scope]).join(", ")}</td>
<td>${limitsOf(key, locale)}</td>
<td>${key.secrets.map(({ digest, expiresAt }) => html`<div><code>${digest}</code> ${expiresAt === undefined ? keys.noEnd : keys.ends(time(expiresAt, locale))}</div>`)}</td>
<td>${time(lastUse(key), locale)}</td>
<td>${usageOf(days, today, locale)}</td>
${mayChange && html`<td>${changeForms(visitor, locale, key)}</td>`}
</tr>`;
  });
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${keys.title}"><table>
<caption>${keys.caption}</caption>
<thead><tr><th scope="col">${keys.name}</th><th scope="col">${keys.team}</th><th scope="col">${keys.may}</th><th scope="col">${keys.limits}</th><th scope="col">${keys.secrets}</th><th scope="col">${keys.lastUsed}</th><th scope="col">${keys.use}</th>${mayChange && html`<th scope="col">${keys.change}</th>`}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

function limitsOf({ limits }: ListedKey, { words, whole }: Locale): Content {
  const { keys } = words;
  const { requestsPerMinute, streams } = limits ?? {};
  if (requestsPerMinute === undefined && streams === undefined) return keys.serverLimits;
  return [
    requestsPerMinute !== undefined && html`<div>${keys.perMinute(whole(requestsPerMinute))}</div>`,
    streams !== undefined && html`<div>${keys.atOnce(whole(streams))}</div>`,
  ];
}

function lastUse({ secrets }: ListedKey): number | undefined {
  const times = secrets.map(({ lastUsedAt }) => lastUsedAt ?? 0);
  const latest = Math.max(0, ...times);
  return latest === 0 ? undefined : latest;
}

function usageOf(days: readonly DayOfUsage[], today: string, locale: Locale): Content {
  const { keys } = locale.words;
  if (days.length === 0) return "–";
  const now = days.find(({ day }) => day === today)?.requests ?? 0;
  const rows = days
    .toReversed()
    .map(
      ({ day, requests, failed, audioMs }) =>
        html`<tr><th scope="row">${locale.day(day)}</th><td class="number">${locale.whole(requests)}</td><td class="number">${locale.whole(failed)}</td><td class="number">${locale.tenths(audioMs / 1000)}</td></tr>`,
    );
  return html`<details><summary>${keys.today(locale.whole(now))}</summary><table>
<caption>${keys.lastDays(locale.whole(shownDays))}</caption>
<thead><tr><th scope="col">${keys.day}</th><th scope="col" class="number">${keys.requests}</th><th scope="col" class="number">${keys.failed}</th><th scope="col" class="number">${keys.audio}</th></tr></thead>
<tbody>${rows}</tbody></table></details>`;
}

function changeForms({ csrf, person }: SignedInUser, { words }: Locale, key: ListedKey): Html {
  const { keys } = words;
  const { id, name } = key;
  const mayRotate = person.role === "owner" || !key.scopes.includes("admin");
  const hidden = html`${csrfField(csrf)}<input type="hidden" name="key" value="${name}">`;
  return html`<details><summary>${keys.changeKey(name)}</summary>
${
  mayRotate &&
  html`<form method="post" action="${place}/rotate">${hidden}
<label for="overlap-${id}">${keys.overlap}</label>
<input id="overlap-${id}" name="overlapHours" type="number" min="0" max="8784" value="24" required>
<p class="row"><button class="plain">${keys.rotate}</button></p></form>`
}
<form method="post" action="${place}/revoke">${hidden}<p class="row"><button class="danger">${keys.revoke}</button></p></form>
</details>`;
}

function createForm({ csrf, person }: SignedInUser, { words }: Locale, state: FormState | undefined): Html {
  const { keys } = words;
  const kept = (name: string) => (state ? field(state.request, name) : "");
  const wrong = (name: string) => {
    const fieldError = state?.failure.fields.find(({ pointer }) => pointer === `/${name}`);
    if (fieldError === undefined) return undefined;
    return state?.failure.code === "name_taken" ? keys.nameTaken(kept(name)) : keys.wrongField(fieldError);
  };
  const input = (name: string, label: string, attributes: Html, help?: string) => {
    const problem = wrong(name);
    const described = problem !== undefined || help !== undefined;
    return html`<div><label for="${name}">${label}</label>
<input id="${name}" name="${name}" value="${kept(name)}" ${attributes}${described && html` aria-describedby="${name}-help"`}${problem !== undefined && html` aria-invalid="true"`}>
${described && html`<p id="${name}-help" class="${problem === undefined ? "help" : "wrong"}">${problem ?? help}</p>`}</div>`;
  };
  const grantable = scopes.filter((scope) => scope !== "admin" || person.role === "owner");
  const choices = grantable.map(
    (scope) =>
      html`<label class="choice"><input type="checkbox" name="scopes" value="${scope}"${isChosen(state, scope) && html` checked`}>${keys.scopes[scope]} <code>${scope}</code></label>`,
  );
  const wrongScopes = wrong("scopes");
  return html`<h2>${keys.makeKey}</h2>
${alert(state && describeFailure(state.failure, words))}
<form method="post" action="${place}" class="card">${csrfField(csrf)}
<div class="grid">
${input("name", keys.name, html`required maxlength="64" autocomplete="off"`, keys.nameHelp)}
${person.role === "owner" && input("team", keys.team, html`maxlength="64" autocomplete="off"`, keys.teamHelp)}
${input("expiresAt", keys.endsOn, html`type="date"`, keys.endsOnHelp)}
${input("requestsPerMinute", keys.requestsPerMinute, html`type="number" min="1" max="1000000"`, keys.limitHelp)}
${input("streams", keys.streams, html`type="number" min="1" max="1000000"`, keys.limitHelp)}
</div>
<fieldset><legend>${keys.may}</legend>${choices}${wrongScopes !== undefined && html`<p class="wrong">${wrongScopes}</p>`}</fieldset>
<p class="row"><button>${keys.make}</button></p>
</form>`;
}

function isChosen(state: FormState | undefined, scope: Scope): boolean {
  if (!state) return scope === "tts:write";
  const { scopes: chosen } = state.request.body as { readonly scopes?: unknown };
  return [chosen].flat().includes(scope);
}
