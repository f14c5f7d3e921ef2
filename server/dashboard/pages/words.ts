import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ListedVoice, languages } from "../../../config/contract/voices.ts";
import { longestSentence } from "../../api/oovs/sentence.ts";
import type { VoiceDirectory } from "../../api/upstream/voice-directory.ts";
import { lexiconWord } from "../../contract/text/lexicon.ts";
import { longestPhonemes, readPhonemes } from "../../contract/text/phonemes.ts";
import type { LexiconEntry, LexiconWord, ReviewedWord } from "../../store/lexicon.ts";
import { type Content, type Html, html } from "../html/html.ts";
import type { Texts } from "../languages/english.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import { problemIn, Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { alert, base, csrfField, type SignedInUser, sendPage, time } from "./layout.ts";
import { addLexiconFiles, fileForms, importedNote } from "./lexicon-files.ts";
import { field, requireCsrf, requireSession, sessionOf } from "./session.ts";
import { pageOf, place, teamOf } from "./team-words.ts";

/**
 * The highest number of words for review on the page. Further words appear when the user has saved or
 * dismissed these words.
 */
const shownWords = 100;

/**
 * Adds the page of out-of-vocabulary words and of the lexicon. A saved pronunciation applies to this replica
 * immediately.
 */
export function addWordPages(
  scope: FastifyInstance,
  parts: DashboardContext,
  voices: Pick<VoiceDirectory, "all">,
): void {
  const { lexicon, table, sentences } = parts.lexicon;
  const guard = { onRequest: requireSession(parts, "owner", "member"), preHandler: requireCsrf };
  addLexiconFiles(scope, parts);
  const show = async (
    request: FastifyRequest,
    reply: FastifyReply,
    requestedTeam: string,
    problem?: string,
  ) => {
    const visitor = sessionOf(request);
    const team = teamOf(request, requestedTeam);
    const [unknown, entries, keepsSentences, teams] = await Promise.all([
      table.review(team, shownWords),
      table.list(team),
      sentences.isOn(team),
      visitor.person.role === "owner" ? table.teams() : [],
    ]);
    const locale = localeOf(request);
    const facts = { csrf: visitor.csrf, team, voices: voices.all(), locale };
    const content = html`${alert(problem)}${importedNote(request)}${teamForm(teams, team, locale)}${review(unknown, facts)}${sentenceForm(keepsSentences, visitor, facts)}${entryTable(entries, facts)}${fileForms(entries, facts)}`;
    const { words } = locale;
    return sendPage(reply, { title: words.words.title, place, content, script: "words.js" });
  };
  const back = (reply: FastifyReply, team: string) => reply.redirect(pageOf(team), 303);

  scope.get("/words", guard, async (request, reply) => {
    const { team } = request.query as { readonly team?: unknown };
    const own = sessionOf(request).person.team ?? "";
    return show(request, reply, typeof team === "string" ? team : own);
  });
  scope.post("/words/save", guard, async (request, reply) => {
    const team = teamOf(request, field(request, "team"));
    try {
      const entry = { ...readWord(request, team), phonemes: readSounds(request) };
      await table.save(sessionOf(request).person.name, entry);
      await lexicon.refresh();
      return back(reply, team);
    } catch (error) {
      const problem = problemIn(error, localeOf(request).words);
      if (problem === undefined) throw error;
      return show(request, reply.code(400), team, problem);
    }
  });
  const owners = { onRequest: requireSession(parts, "owner"), preHandler: requireCsrf };
  scope.post("/words/sentences", owners, async (request, reply) => {
    const team = field(request, "team");
    const isOn = field(request, "keep") === "yes";
    await sentences.turn(sessionOf(request).person.name, team, isOn);
    await lexicon.refresh();
    return back(reply, team);
  });
  for (const change of ["remove", "dismiss"] as const) {
    scope.post(`/words/${change}`, guard, async (request, reply) => {
      const team = teamOf(request, field(request, "team"));
      await table[change](sessionOf(request).person.name, readWord(request, team));
      await lexicon.refresh();
      return back(reply, team);
    });
  }
}

/** Reads the word of a form. @throws Refusal if the word or the language is not valid. */
function readWord(request: FastifyRequest, team: string): LexiconWord {
  const word = lexiconWord(field(request, "word"));
  const language = field(request, "language");
  if (!Object.hasOwn(languages, language)) throw wrong(({ words }) => words.noSuchLanguage);
  if (word === undefined) throw wrong(({ words }) => words.wordRule);
  return { team, language, word };
}

function wrong(say: (words: Texts) => string): Refusal {
  return new Refusal("invalid_request", say);
}

/** Reads the pronunciation of a form. @throws Refusal with the position of the error. */
function readSounds(request: FastifyRequest): string {
  const written = field(request, "phonemes").replace(/^\{|\}$/g, "");
  if (written.length > longestPhonemes) {
    throw wrong(({ words }) => words.longSounds(longestPhonemes));
  }
  const reading = readPhonemes(written);
  if ("phonemes" in reading) return written;
  const after = JSON.stringify([...written].slice(0, reading.at).join(""));
  throw wrong(({ words }) => words.unreadable(written, after, reading.problem));
}

interface Facts {
  readonly csrf: string;
  readonly team: string;
  readonly voices: readonly ListedVoice[];
  readonly locale: Locale;
}

function teamForm(teams: readonly string[], current: string, locale: Locale): Content {
  const { words, frame } = locale.words;
  if (teams.length < 2 && current === "") return undefined;
  const options = [...new Set([current, ...teams])]
    .toSorted()
    .map(
      (team) =>
        html`<option value="${team}"${team === current && html` selected`}>${team === "" ? words.noTeam : team}</option>`,
    );
  return html`<form method="get" action="${place}" class="row"><label for="team">${words.team}</label><select id="team" name="team">${options}</select><button class="plain">${frame.show}</button></form>`;
}

function review(unknown: readonly ReviewedWord[], facts: Facts): Html {
  const { locale } = facts;
  const { words } = locale.words;
  if (unknown.length === 0) {
    return html`<p class="card">${words.nothing(html`<code>saveOovs</code>`)}</p>`;
  }
  const items = unknown.map(
    ({ word, language, sentence, count, firstSeen, lastSeen }, i) => html`<li class="card">
<h2 dir="auto" lang="${languages[language]?.iso6391 ?? "en"}">${word}</h2>
<p class="quiet">${words.met(locale.languageName(language), count, locale.whole(count), time(firstSeen, locale), time(lastSeen, locale))}</p>
${sentence !== undefined && html`<blockquote dir="auto" lang="${languages[language]?.iso6391 ?? "en"}">${sentence}</blockquote>`}
${saveForm({ id: `w${i}`, word, language, phonemes: "" }, facts)}
<form method="post" action="${place}/dismiss">${hidden(facts, word, language)}<p class="row"><button class="plain">${words.dismiss(word)}</button></p></form>
</li>`,
  );
  const link = html`<a href="#alphabet">${words.alphabet}</a>`;
  return html`<p>${words.how(link, html`<code>phonemizeBetweenBrackets</code>`)}</p>
<ul class="plain-list">${items}</ul>
${alphabet(locale)}`;
}

/** Shows whether sentences are saved. Only owners can change this setting. */
function sentenceForm(isOn: boolean, { person, csrf }: SignedInUser, { team, locale }: Facts): Html {
  const { words } = locale.words;
  const state = isOn ? words.sentencesKept(locale.whole(longestSentence)) : words.sentencesNotKept;
  const form = html`<form method="post" action="${place}/sentences">${csrfField(csrf)}<input type="hidden" name="team" value="${team}"><input type="hidden" name="keep" value="${isOn ? "no" : "yes"}">
<p class="row"><button class="plain">${isOn ? words.forgetSentences : words.keepSentences}</button></p></form>`;
  return html`<h2>${words.sentences}</h2>
<p>${state}</p>${person.role === "owner" && form}`;
}

function hidden({ csrf, team }: Facts, word: string, language: string): Html {
  return html`${csrfField(csrf)}<input type="hidden" name="team" value="${team}"><input type="hidden" name="word" value="${word}"><input type="hidden" name="language" value="${language}">`;
}

interface SaveForm {
  readonly id: string;
  readonly word: string;
  readonly language: string;
  readonly phonemes: string;
}

function saveForm({ id, word, language, phonemes }: SaveForm, facts: Facts): Html {
  const { words } = facts.locale.words;
  const voice = facts.voices.find((one) => one.language === language && one.models.includes("mist"));
  return html`<form method="post" action="${place}/save" class="row" data-preview="${voice?.id}" data-speech="${base}/playground/speech">${hidden(facts, word, language)}
<label for="${id}">${words.say(word)}</label>
<input id="${id}" name="phonemes" value="${phonemes}" required maxlength="${longestPhonemes}" class="sounds" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="k1Ast0xm">
<button type="button" class="plain" data-listen hidden>${words.listen(word)}</button>
<button>${words.save(word)}</button><span role="status" class="quiet"></span></form>`;
}

function entryTable(entries: readonly LexiconEntry[], facts: Facts): Html {
  const { locale } = facts;
  const { words } = locale.words;
  const rows = entries.map(
    ({ word, language, phonemes }, i) => html`<tr>
<th scope="row" dir="auto">${word}</th><td>${locale.languageName(language)}</td>
<td>${saveForm({ id: `e${i}`, word, language, phonemes }, facts)}</td>
<td><form method="post" action="${place}/remove">${hidden(facts, word, language)}<button class="danger">${words.removeWord(word)}</button></form></td></tr>`,
  );
  return html`<h2>${words.lexicon}</h2>
${entries.length === 0 && html`<p>${words.empty(html`<code>mist</code>`, html`<code>mistv2</code>`)}</p>`}
${
  entries.length > 0 &&
  html`<div class="scroll" tabindex="0" role="region" aria-label="${words.lexicon}"><table>
<thead><tr><th scope="col">${words.word}</th><th scope="col">${words.language}</th><th scope="col">${words.saidAs}</th><th scope="col">${words.remove}</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}
<h2>${words.addWord}</h2>
<form method="post" action="${place}/save" class="card">${csrfField(facts.csrf)}<input type="hidden" name="team" value="${facts.team}">
<div class="grid">
<div><label for="new-word">${words.word}</label><input id="new-word" name="word" required maxlength="60" autocomplete="off"></div>
<div><label for="new-language">${words.language}</label><select id="new-language" name="language">${[...new Set(facts.voices.map(({ language }) => language))].map((language) => html`<option value="${language}">${locale.languageName(language)}</option>`)}</select></div>
<div><label for="new-phonemes">${words.saidAs}</label><input id="new-phonemes" name="phonemes" required maxlength="${longestPhonemes}" autocomplete="off" autocapitalize="none" spellcheck="false"></div>
</div><p class="row"><button>${words.add}</button></p></form>`;
}

const examples: readonly (readonly [sounds: string, words: string])[] = [
  ["@ a A W x Y E R e", "bat, father, but, now, about, my, bet, bird, day"],
  ["I i o O U u N", "bit, see, go, boy, book, too, button"],
  ["b C d D f g h J k l m n G", "buy, chin, die, then, fan, guy, he, joy, key, low, my, no, sing"],
  ["p r s S t T v w y z Z", "pie, row, so, she, tie, thin, van, we, you, zoo, measure"],
];

function alphabet(locale: Locale): Html {
  const { words } = locale.words;
  const rows = examples.map(
    ([sounds, samples]) =>
      html`<tr><th scope="row"><code>${sounds}</code></th><td lang="en">${samples}</td></tr>`,
  );
  return html`<details id="alphabet"><summary>${words.alphabet}</summary>
<p>${words.stress(html`<code>k1Ast0xm</code>`)}</p>
<table><thead><tr><th scope="col">${words.sounds}</th><th scope="col">${words.asIn}</th></tr></thead><tbody>${rows}</tbody></table></details>`;
}
