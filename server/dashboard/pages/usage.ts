import type { FastifyInstance, FastifyRequest } from "fastify";
import type { LicenseGate } from "../../api/access/license-gate.ts";
import type { Prober } from "../../api/upstream/prober.ts";
import { dayOf } from "../../store/usage.ts";
import type { SpeechUsage, UsageSum, UsageView } from "../../store/voice-usage.ts";
import { csv } from "../html/csv.ts";
import { type Content, type Html, html } from "../html/html.ts";
import { barChart } from "../html/plot.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { base, sendPage, time } from "./layout.ts";
import { requireSession, sessionOf } from "./session.ts";

const place = `${base}/usage`;
const dayMs = 86_400_000;
/** The periods that the user can select, in days including today. */
const spans = [7, 30, 90] as const;
const usualSpan = 30;
/** The highest number of rows of one table on the page, and of one CSV file. */
const shownRows = 500;
const mostRows = 100_000;

export interface ServerState {
  readonly license: Pick<LicenseGate, "verdict">;
  readonly prober: Pick<Prober, "configured" | "isReachable">;
}

/** Adds the page of the usage and of the server's health, and the CSV file of the usage. */
export function addUsagePages(scope: FastifyInstance, parts: DashboardContext, state: ServerState): void {
  const look = { onRequest: requireSession(parts, "owner", "member", "viewer") };
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
    const locale = localeOf(request);
    const { usage } = locale.words;
    const cut = html`; <strong>${usage.csvCut(locale.whole(mostRows), locale.whole(rows))}</strong>${usage.csvWhy}`;
    const newestFirst = byDay.toReversed().map((sum) => ({ ...sum, of: sum.of.map(locale.day) }));
    const content = html`${health(state, locale)}
<h2>${usage.spoken}</h2>
${spanForm(days, locale)}
${dayPlot(everyDay, byDay, locale)}
${table(usage.byDay, [usage.day], newestFirst, locale)}
${table(usage.byKey, [usage.key, usage.team], byKey, locale)}
${table(usage.byVoice, [usage.model, usage.voice], byVoice, locale)}
<p><a href="${place}.csv?days=${days}">${usage.csv}</a>${usage.csvRows}${rows > mostRows && cut}</p>
<p class="quiet">${usage.note}</p>`;
    return sendPage(reply, { title: usage.title, place, content });
  });
  scope.get("/usage.csv", look, async (request, reply) => {
    const newest = await parts.voiceUsage.rows(viewOf(request, spanOf(request), parts.now()), mostRows + 1);
    const rows = newest.slice(0, mostRows);
    const name = rows.length < newest.length ? `svc-tts-usage-newest-${mostRows}-rows` : "svc-tts-usage";
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

/** Selects the usage that the user may see: all teams for an owner, otherwise the own team. */
function viewOf(request: FastifyRequest, days: number, now: number): UsageView {
  const { role, team } = sessionOf(request).person;
  return { since: dayOf(now - (days - 1) * dayMs), team: role === "owner" ? undefined : (team ?? "") };
}

function spanOf({ query }: FastifyRequest): number {
  const { days } = query as { readonly days?: unknown };
  return spans.find((span) => String(span) === days) ?? usualSpan;
}

function health({ license, prober }: ServerState, locale: Locale): Html {
  const { usage } = locale.words;
  const verdict = license.verdict();
  const { state, claims, graceUntil } = verdict;
  const models = prober
    .configured()
    .map(
      (model) =>
        html`<tr><th scope="row">${model}</th><td>${prober.isReachable(model) ? usage.reachable : html`<strong>${usage.notReachable}</strong>`}</td></tr>`,
    );
  return html`<h2>${usage.health}</h2>
<div class="card"><p>${usage.license}: <strong>${usage.licenseStates[state]}</strong>${claims && usage.licenseUntil(time(claims.exp * 1000, locale))}${graceUntil !== undefined && usage.speechEnds(time(graceUntil, locale))}</p>
${state !== "valid" && state !== "not_required" && html`<p>${usage.licenseWhy(verdict)}</p>`}
<table><caption>${usage.models}</caption><thead><tr><th scope="col">${usage.model}</th><th scope="col">${usage.state}</th></tr></thead><tbody>${models}</tbody></table></div>`;
}

function spanForm(days: number, { words }: Locale): Html {
  const { usage, frame } = words;
  const options = spans.map(
    (span) =>
      html`<option value="${span}"${span === days && html` selected`}>${usage.lastDays(String(span))}</option>`,
  );
  return html`<form method="get" action="${place}" class="row"><label for="days">${usage.days}</label><select id="days" name="days">${options}</select><button class="plain">${frame.show}</button></form>`;
}

function dayPlot(
  days: readonly string[],
  sums: readonly UsageSum[],
  { words, day: shown, whole }: Locale,
): Html {
  const { usage } = words;
  const known = new Map(sums.map((sum) => [sum.of[0], sum]));
  const bars = days.map((day) => {
    const { requests = 0, failed = 0 } = known.get(day) ?? {};
    return { good: requests - failed, bad: failed };
  });
  const most = Math.max(0, ...bars.map(({ good, bad }) => good + bad));
  const label = usage.plot(shown(days[0] ?? ""), shown(days.at(-1) ?? ""), whole(most));
  return html`<figure>${barChart(label, bars)}<figcaption>${usage.failedOnTop(label)}</figcaption></figure>`;
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

function shownCounts(use: SpeechUsage, { whole, tenths }: Locale): readonly string[] {
  const { requests, failed, characters, audioMs, timed } = use;
  return [
    ...[requests, failed, characters].map(whole),
    tenths(audioMs / 1000),
    ...(timed === 0 ? ["–", "–"] : [use.firstAudioMs / timed, use.longestFirstAudioMs].map(whole)),
  ];
}

function table(
  caption: string,
  names: readonly string[],
  sums: readonly UsageSum[],
  locale: Locale,
): Content {
  const { usage } = locale.words;
  if (sums.length === 0) return html`<h3>${caption}</h3><p>${usage.nothing}</p>`;
  const heads = [
    ...[usage.requests, usage.failed, usage.characters],
    ...[usage.audio, usage.firstAudio, usage.longest],
  ];
  const rows = sums.map(
    (sum) => html`<tr>
${sum.of.map((name, i) => (i === 0 ? html`<th scope="row" dir="auto">${name}</th>` : html`<td dir="auto">${name === "" ? "–" : name}</td>`))}
${shownCounts(sum, locale).map((count) => html`<td class="number">${count}</td>`)}</tr>`,
  );
  return html`<h3>${caption}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table>
<thead><tr>${names.map((name) => html`<th scope="col">${name}</th>`)}${heads.map((head) => html`<th scope="col" class="number">${head}</th>`)}</tr></thead>
<tbody>${rows}</tbody></table></div>`;
}
