import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ListedVoice, languages } from "../../../config/contract/voices.ts";
import type { ApiParts } from "../../api/parts.ts";
import { type LexiconEntry, LexiconError, type LexiconWord, type ReviewedWord } from "../../store/lexicon.ts";
import { lexiconWord, longestPhonemes } from "../../text/lexicon.ts";
import { readPhonemes } from "../../text/phonemes.ts";
import { type Content, type Html, html } from "../html.ts";
import { alert, base, csrfField, layout, time, type Visitor } from "../layout.ts";
import type { DashboardParts } from "../parts.ts";
import { field, requireCsrf, requireVisit, visitOf } from "../visit.ts";
import { addLexiconFiles, fileForms, importedNote } from "./lexicon-files.ts";
import { languageName, pageOf, place, teamOf } from "./team-words.ts";

/** Words of one page; the others follow when these are done. */
const shownWords = 100;

/** Words that no dictionary had: how the team says them is written here, and spoken at once. */
export function addWordPages(scope: FastifyInstance, parts: DashboardParts, { voices }: ApiParts): void {
  const { lexicon, table, sentences } = parts.lexicon;
  const guard = { onRequest: requireVisit(parts, "owner", "member"), preHandler: requireCsrf };
  addLexiconFiles(scope, parts);
  const show = async (request: FastifyRequest, reply: FastifyReply, asked: string, problem?: string) => {
    const visitor = visitOf(request);
    const team = teamOf(request, asked);
    const [words, entries, keepsSentences, teams] = await Promise.all([
      table.review(team, shownWords),
      table.list(team),
      sentences.isOn(team),
      visitor.person.role === "owner" ? table.teams() : [],
    ]);
    const facts = { csrf: visitor.csrf, team, voices: voices.all() };
    const content = html`${alert(problem)}${importedNote(request)}${teamForm(teams, team)}${review(words, facts)}${sentenceForm(keepsSentences, visitor, team)}${entryTable(entries, facts)}${fileForms(entries, facts)}`;
    return reply
      .type("text/html; charset=utf-8")
      .send(layout({ title: "Unknown words", visitor, place, content, script: "words.js" }));
  };
  const back = (reply: FastifyReply, team: string) => reply.redirect(pageOf(team), 303);

  scope.get("/words", guard, async (request, reply) => {
    const { team } = request.query as { readonly team?: unknown };
    const own = visitOf(request).person.team ?? "";
    return show(request, reply, typeof team === "string" ? team : own);
  });
  scope.post("/words/save", guard, async (request, reply) => {
    const team = teamOf(request, field(request, "team"));
    try {
      const entry = { ...readWord(request, team), phonemes: readSounds(request) };
      await table.save(visitOf(request).person.name, entry);
      await lexicon.refresh();
      return back(reply, team);
    } catch (error) {
      if (!(error instanceof LexiconError)) throw error;
      return show(request, reply.code(400), team, error.message);
    }
  });
  const owners = { onRequest: requireVisit(parts, "owner"), preHandler: requireCsrf };
  scope.post("/words/sentences", owners, async (request, reply) => {
    const team = field(request, "team");
    const isOn = field(request, "keep") === "yes";
    await sentences.turn(visitOf(request).person.name, team, isOn);
    await lexicon.refresh();
    return back(reply, team);
  });
  for (const change of ["remove", "dismiss"] as const) {
    scope.post(`/words/${change}`, guard, async (request, reply) => {
      const team = teamOf(request, field(request, "team"));
      await table[change](visitOf(request).person.name, readWord(request, team));
      await lexicon.refresh();
      return back(reply, team);
    });
  }
}

/** @throws LexiconError */
function readWord(request: FastifyRequest, team: string): LexiconWord {
  const word = lexiconWord(field(request, "word"));
  const language = field(request, "language");
  if (!Object.hasOwn(languages, language))
    throw new LexiconError("The language is none that a voice speaks.");
  if (word === undefined) {
    throw new LexiconError("A word is 1 to 60 letters, with hyphens and apostrophes between.");
  }
  return { team, language, word };
}

/** @throws LexiconError naming the place that is wrong. */
function readSounds(request: FastifyRequest): string {
  const written = field(request, "phonemes").replace(/^\{|\}$/g, "");
  if (written.length > longestPhonemes) {
    throw new LexiconError(`A pronunciation has ${longestPhonemes} characters at most.`);
  }
  const reading = readPhonemes(written);
  if ("phonemes" in reading) return written;
  const at = [...written].slice(0, reading.at).join("");
  throw new LexiconError(
    `The pronunciation {${written}} cannot be read after ${JSON.stringify(at)}: ${reading.problem}.`,
  );
}

interface Facts {
  readonly csrf: string;
  readonly team: string;
  readonly voices: readonly ListedVoice[];
}

function teamForm(teams: readonly string[], current: string): Content {
  if (teams.length < 2 && current === "") return undefined;
  const options = [...new Set([current, ...teams])]
    .toSorted()
    .map(
      (team) =>
        html`<option value="${team}"${team === current && html` selected`}>${team === "" ? "keys without a team" : team}</option>`,
    );
  return html`<form method="get" action="${place}" class="row"><label for="team">Team</label><select id="team" name="team">${options}</select><button class="plain">Show</button></form>`;
}

function review(words: readonly ReviewedWord[], facts: Facts): Html {
  if (words.length === 0) {
    return html`<p class="card">Nothing to review. Words that no dictionary has appear here within a minute of a request with <code>saveOovs</code>.</p>`;
  }
  const items = words.map(
    ({ word, language, sentence, count, firstSeen, lastSeen }, i) => html`<li class="card">
<h2 dir="auto" lang="${languages[language]?.iso6391 ?? "en"}">${word}</h2>
<p class="quiet">${languageName(language)}; met ${count === 1 ? "once" : `${count} times`}, from ${time(firstSeen)} to ${time(lastSeen)} UTC</p>
${sentence !== undefined && html`<blockquote dir="auto" lang="${languages[language]?.iso6391 ?? "en"}">${sentence}</blockquote>`}
${saveForm({ id: `w${i}`, word, language, phonemes: "" }, facts)}
<form method="post" action="${place}/dismiss">${hidden(facts, word, language)}<p class="row"><button class="plain">Dismiss ${word}</button></p></form>
</li>`,
  );
  return html`<p>How are these said? <a href="#alphabet">The phonetic alphabet</a> is that of <code>phonemizeBetweenBrackets</code>.</p>
<ul class="plain-list">${items}</ul>
${alphabet()}`;
}

/** Everybody may know whether sentences are kept; owners choose. */
function sentenceForm(isOn: boolean, { person, csrf }: Visitor, team: string): Html {
  const state = isOn
    ? "The sentence around a word that is met is kept, of up to 240 characters."
    : "Words are kept without the sentences around them.";
  const form = html`<form method="post" action="${place}/sentences">${csrfField(csrf)}<input type="hidden" name="team" value="${team}"><input type="hidden" name="keep" value="${isOn ? "no" : "yes"}">
<p class="row"><button class="plain">${isOn ? "Keep no sentences, and forget those kept" : "Keep sentences"}</button></p></form>`;
  return html`<h2>Sentences</h2>
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
  const voice = facts.voices.find((one) => one.language === language && one.models.includes("mist"));
  return html`<form method="post" action="${place}/save" class="row" data-preview="${voice?.id}" data-speech="${base}/playground/speech">${hidden(facts, word, language)}
<label for="${id}">Say ${word} as</label>
<input id="${id}" name="phonemes" value="${phonemes}" required maxlength="${longestPhonemes}" class="sounds" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="k1Ast0xm">
<button type="button" class="plain" data-listen hidden>Listen to ${word}</button>
<button>Save ${word}</button><span role="status" class="quiet"></span></form>`;
}

function entryTable(entries: readonly LexiconEntry[], facts: Facts): Html {
  const rows = entries.map(
    ({ word, language, phonemes }, i) => html`<tr>
<th scope="row" dir="auto">${word}</th><td>${languageName(language)}</td>
<td>${saveForm({ id: `e${i}`, word, language, phonemes }, facts)}</td>
<td><form method="post" action="${place}/remove">${hidden(facts, word, language)}<button class="danger">Remove ${word}</button></form></td></tr>`,
  );
  return html`<h2>Lexicon</h2>
${entries.length === 0 && html`<p>Empty yet. What is saved here is spoken by <code>mist</code> and <code>mistv2</code> within 5 seconds, for every key of the team.</p>`}
${
  entries.length > 0 &&
  html`<div class="scroll" tabindex="0" role="region" aria-label="Lexicon"><table>
<thead><tr><th scope="col">Word</th><th scope="col">Language</th><th scope="col">Said as</th><th scope="col">Remove</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}
<h2>Add a word</h2>
<form method="post" action="${place}/save" class="card">${csrfField(facts.csrf)}<input type="hidden" name="team" value="${facts.team}">
<div class="grid">
<div><label for="new-word">Word</label><input id="new-word" name="word" required maxlength="60" autocomplete="off"></div>
<div><label for="new-language">Language</label><select id="new-language" name="language">${[...new Set(facts.voices.map(({ language }) => language))].map((language) => html`<option value="${language}">${languageName(language)}</option>`)}</select></div>
<div><label for="new-phonemes">Said as</label><input id="new-phonemes" name="phonemes" required maxlength="${longestPhonemes}" autocomplete="off" autocapitalize="none" spellcheck="false"></div>
</div><p class="row"><button>Add the word</button></p></form>`;
}

const examples: readonly (readonly [sounds: string, words: string])[] = [
  ["@ a A W x Y E R e", "bat, father, but, now, about, my, bet, bird, day"],
  ["I i o O U u N", "bit, see, go, boy, book, too, button"],
  ["b C d D f g h J k l m n G", "buy, chin, die, then, fan, guy, he, joy, key, low, my, no, sing"],
  ["p r s S t T v w y z Z", "pie, row, so, she, tie, thin, van, we, you, zoo, measure"],
];

function alphabet(): Html {
  const rows = examples.map(
    ([sounds, words]) => html`<tr><th scope="row"><code>${sounds}</code></th><td>${words}</td></tr>`,
  );
  return html`<details id="alphabet"><summary>The phonetic alphabet</summary>
<p>0, 1 or 2 before a vowel is no stress, the main stress or a second one: <code>k1Ast0xm</code> is custom.</p>
<table><thead><tr><th scope="col">Sounds</th><th scope="col">As in</th></tr></thead><tbody>${rows}</tbody></table></details>`;
}
