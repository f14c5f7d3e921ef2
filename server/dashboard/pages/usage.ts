import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ApiParts } from "../../api/parts.ts";
import { dayOf } from "../../store/usage.ts";
import type { SpeechUsage, UsageSum, UsageView } from "../../store/voice-usage.ts";
import { csv } from "../csv.ts";
import { type Content, type Html, html } from "../html.ts";
import { base, layout, time } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { plot } from "../plot.ts";
import { requireVisit, visitOf } from "../visit.ts";

const place = `${base}/usage`;
const dayMs = 86_400_000;
/** Days that can be looked at, today included. */
const spans = [7, 30, 90] as const;
const usualSpan = 30;
/** Rows of one table, and of one file. */
const shownRows = 500;
const mostRows = 100_000;

/** What was spoken for whom, and how the server is. */
export function addUsagePages(scope: FastifyInstance, parts: DashboardParts, api: ApiParts): void {
  const look = { onRequest: requireVisit(parts, "owner", "member", "viewer") };
  scope.get("/usage", look, async (request, reply) => {
    const days = spanOf(request);
    const view = viewOf(request, days, parts.now());
    const [byDay, byKey, byVoice, rows] = await Promise.all([
      parts.voiceUsage.sums(view, "day", days),
      parts.voiceUsage.sums(view, "key", shownRows),
      parts.voiceUsage.sums(view, "voice", shownRows),
      parts.voiceUsage.count(view),
    ]);
    const everyDay = Array.from({ length: days }, (_, i) => dayOf(parts.now() - (days - 1 - i) * dayMs));
    const content = html`${health(api)}
<h2>Spoken</h2>
${spanForm(days)}
${dayPlot(everyDay, byDay)}
${table("By day", ["Day"], byDay.toReversed())}
${table("By key", ["Key", "Team"], byKey)}
${table("By voice", ["Model", "Voice"], byVoice)}
<p><a href="${place}.csv?days=${days}">Download as CSV</a>: a row for each day, key and voice, the newest day first${rows > mostRows && html`; <strong>the newest ${mostRows} rows of ${rows}</strong>, as more are too many for one file`}</p>
<p class="quiet">Requests that were to be spoken. Days are UTC. First audio is the time from a streamed request to its first audio. Written every 5 seconds.</p>`;
    return reply
      .type("text/html; charset=utf-8")
      .send(layout({ title: "Usage", visitor: request.visit, place, content }));
  });
  scope.get("/usage.csv", look, async (request, reply) => {
    const found = await parts.voiceUsage.rows(viewOf(request, spanOf(request), parts.now()), mostRows + 1);
    const rows = found.slice(0, mostRows);
    const name = rows.length < found.length ? `svc-tts-usage-newest-${mostRows}-rows` : "svc-tts-usage";
    return reply
      .type("text/csv; charset=utf-8")
      .header("content-disposition", `attachment; filename="${name}.csv"`)
      .send(
        csv([
          ["day", "key", "team", "model", "voice", ...counts],
          ...rows.map((row) => [row.day, row.key, row.team, row.model, row.voice, ...counted(row)]),
        ]),
      );
  });
}

/** An owner sees all; others what was spoken for their team. */
function viewOf(request: FastifyRequest, days: number, now: number): UsageView {
  const { role, team } = visitOf(request).person;
  return { since: dayOf(now - (days - 1) * dayMs), team: role === "owner" ? undefined : (team ?? "") };
}

function spanOf({ query }: FastifyRequest): number {
  const { days } = query as { readonly days?: unknown };
  return spans.find((span) => String(span) === days) ?? usualSpan;
}

function health({ license, prober }: ApiParts): Html {
  const { state, message, claims, graceUntil } = license.verdict();
  const models = prober
    .configured()
    .map(
      (model) =>
        html`<tr><th scope="row">${model}</th><td>${prober.isReachable(model) ? "reachable" : html`<strong>not reachable</strong>`}</td></tr>`,
    );
  return html`<h2>Health</h2>
<div class="card"><p>License: <strong>${state}</strong>${claims && html`, until ${time(claims.exp * 1000)} UTC`}${graceUntil !== undefined && html`; speech ends ${time(graceUntil)} UTC`}</p>
${state !== "valid" && html`<p>${message}</p>`}
<table><caption>Models, as the replica sees them that made this page</caption><thead><tr><th scope="col">Model</th><th scope="col">State</th></tr></thead><tbody>${models}</tbody></table></div>`;
}

function spanForm(days: number): Html {
  const options = spans.map(
    (span) => html`<option value="${span}"${span === days && html` selected`}>the last ${span} days</option>`,
  );
  return html`<form method="get" action="${place}" class="row"><label for="days">Days</label><select id="days" name="days">${options}</select><button class="plain">Show</button></form>`;
}

function dayPlot(days: readonly string[], sums: readonly UsageSum[]): Html {
  const known = new Map(sums.map((sum) => [sum.of[0], sum]));
  const bars = days.map((day) => {
    const { requests = 0, failed = 0 } = known.get(day) ?? {};
    return { good: requests - failed, bad: failed };
  });
  const most = Math.max(0, ...bars.map(({ good, bad }) => good + bad));
  const label = `Requests a day from ${days[0]} to ${days.at(-1)}, ${most} at most`;
  return html`<figure>${plot(label, bars)}<figcaption>${label}; failed ones on top.</figcaption></figure>`;
}

const counts = [
  ...["requests", "failed", "characters", "audio_seconds"],
  ...["first_audio_mean_ms", "first_audio_longest_ms"],
] as const;

function counted(use: SpeechUsage): readonly (string | number)[] {
  return [
    use.requests,
    use.failed,
    use.characters,
    Number((use.audioMs / 1000).toFixed(1)),
    ...(use.timed === 0 ? ["", ""] : [Math.round(use.firstAudioMs / use.timed), use.longestFirstAudioMs]),
  ];
}

function table(caption: string, names: readonly string[], sums: readonly UsageSum[]): Content {
  if (sums.length === 0) return html`<h3>${caption}</h3><p>Nothing was spoken in this time.</p>`;
  const heads = ["Requests", "Failed", "Characters", "Audio, s", "First audio, ms", "longest, ms"];
  const rows = sums.map(
    (sum) => html`<tr>
${sum.of.map((name, i) => (i === 0 ? html`<th scope="row" dir="auto">${name}</th>` : html`<td dir="auto">${name === "" ? "–" : name}</td>`))}
${counted(sum).map((count) => html`<td class="number">${count === "" ? "–" : count}</td>`)}</tr>`,
  );
  return html`<h3>${caption}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table>
<thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}${heads.map((head) => html`<th scope="col" class="number">${head}</th>`)}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}
