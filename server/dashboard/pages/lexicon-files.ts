import multipart from "@fastify/multipart";
import type {
  FastifyError,
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
} from "fastify";
import { languages } from "../../../config/contract/voices.ts";
import { type LexiconEntry, maxEntries } from "../../store/lexicon.ts";
import { alphabets, isAlphabet } from "../../text/pls/alphabets.ts";
import type { PlsProblem } from "../../text/pls/faults.ts";
import { readPls } from "../../text/pls/read.ts";
import { writePls } from "../../text/pls/write.ts";
import { type Content, type Html, html } from "../html/html.ts";
import type { Texts } from "../languages/english.ts";
import { type Locale, localeOf } from "../languages/locale.ts";
import { Refusal } from "../languages/refusal.ts";
import type { DashboardContext } from "./dashboard-context.ts";
import { csrfField, sendPage } from "./layout.ts";
import { field, requireCsrf, requireSession, sessionOf } from "./session.ts";
import { pageOf, place, teamOf } from "./team-words.ts";

/** The size limit of a file. A full lexicon of long words has about half this size. */
const maxFileBytes = 2 * 1024 * 1024;
const formLimits = { fileSize: maxFileBytes, files: 1, fields: 4, parts: 5, fieldSize: 1_000 };

/**
 * Adds the routes that export and import a lexicon as files of the Pronunciation Lexicon Specification (PLS).
 */
export function addLexiconFiles(scope: FastifyInstance, parts: DashboardContext): void {
  const { lexicon, table } = parts.lexicon;
  const onRequest = requireSession(parts, "owner", "member");

  scope.get("/words/export", { onRequest }, async (request, reply) => {
    const { team, language, alphabet } = readExportQuery(request);
    const words = (await table.list(team)).filter((entry) => entry.language === language);
    return reply
      .type("application/pls+xml; charset=utf-8")
      .header("content-disposition", `attachment; filename="lexicon-${language}.pls"`)
      .send(writePls(words, languages[language]?.iso6391 ?? language, alphabet));
  });

  const uploads: FastifyPluginAsync = async (inner) => {
    await inner.register(multipart, { limits: formLimits });
    const guard = { onRequest, preValidation: readForm, preHandler: requireCsrf };
    inner.post("/words/import", guard, async (request, reply) => {
      const team = teamOf(request, field(request, "team"));
      const reading = readPls(fileOf(request), { words: maxEntries });
      if ("problems" in reading) return showProblems(request, reply.code(400), team, reading);
      const { language, words } = reading.lexicon;
      const entries = words.map((word) => ({ ...word, language }));
      await table.saveAll(sessionOf(request).person.name, team, entries);
      await lexicon.refresh();
      return reply.redirect(`${pageOf(team)}&imported=${words.length}`, 303);
    });
  };
  void scope.register(uploads);
}

function readExportQuery(request: FastifyRequest) {
  const { team, language, alphabet } = request.query as Readonly<Record<string, unknown>>;
  if (typeof language !== "string" || !Object.hasOwn(languages, language)) {
    throw new Refusal("invalid_request", ({ words }) => words.noSuchLanguage);
  }
  if (!isAlphabet(alphabet)) {
    throw new Refusal("invalid_request", ({ files }) => files.alphabetRule(alphabets));
  }
  return { team: teamOf(request, typeof team === "string" ? team : ""), language, alphabet };
}

/**
 * Reads a form with a file into the body of the request. @throws Refusal if the form is invalid or exceeds
 * the limits.
 */
async function readForm(request: FastifyRequest): Promise<void> {
  const body: Record<string, unknown> = {};
  try {
    for await (const part of request.parts()) {
      body[part.fieldname] = part.type === "file" ? await part.toBuffer() : part.value;
    }
  } catch (cause) {
    throw refusalOf(cause as FastifyError);
  }
  request.body = body;
}

function refusalOf(cause: FastifyError): Refusal {
  const invalid = (say: (words: Texts) => string) => new Refusal("invalid_request", say, { cause });
  switch (cause.code) {
    case "FST_REQ_FILE_TOO_LARGE": {
      const most = `${maxFileBytes / 1024 / 1024} MiB`;
      return new Refusal("body_too_large", ({ files }) => files.large(most), { cause });
    }
    case "FST_FILES_LIMIT":
      return invalid(({ files }) => files.oneFile);
    case "FST_FIELDS_LIMIT":
    case "FST_PARTS_LIMIT":
      return invalid(({ files }) => files.manyFields);
    default:
      return invalid(({ files }) => files.unreadable);
  }
}

function fileOf({ body }: FastifyRequest): Uint8Array {
  const { file } = body as { readonly file?: unknown };
  if (file instanceof Uint8Array && file.length > 0) return file;
  throw new Refusal("invalid_request", ({ files }) => files.noFile);
}

function showProblems(
  request: FastifyRequest,
  reply: FastifyReply,
  team: string,
  { problems, count }: { readonly problems: readonly PlsProblem[]; readonly count: number },
): FastifyReply {
  const { words, whole } = localeOf(request);
  const { files } = words;
  const more = count - problems.length;
  const content = html`<div class="alert" role="alert"><p>${files.nothingTaken}</p>
<ul>${problems.map(({ line, fault }) => html`<li dir="auto">${files.line(whole(line), files.problem(fault))}</li>`)}</ul>
${more > 0 && html`<p>${files.more(whole(more))}</p>`}</div>
<p><a href="${pageOf(team)}">${files.back}</a></p>`;
  return sendPage(reply, { title: files.import, place, content });
}

/**
 * Shows the result of an import. After an import, the server redirects the browser to the page with this
 * message.
 */
export function importedNote(request: FastifyRequest): Content {
  const { imported } = request.query as { readonly imported?: unknown };
  if (typeof imported !== "string" || !/^\d{1,5}$/.test(imported)) return undefined;
  const { words, whole } = localeOf(request);
  const count = Number(imported);
  return html`<p class="done" role="status">${words.files.imported(count, whole(count))}</p>`;
}

export function fileForms(
  entries: readonly LexiconEntry[],
  { csrf, team, locale }: { readonly csrf: string; readonly team: string; readonly locale: Locale },
): Html {
  const { files, words } = locale.words;
  const codes = [...new Set(entries.map(({ language }) => language))];
  const options = codes.map((code) => html`<option value="${code}">${locale.languageName(code)}</option>`);
  return html`<h2>${files.title}</h2>
<p>${files.asPls(html`<a href="https://www.w3.org/TR/pronunciation-lexicon/">PLS 1.0</a>`)}</p>
${
  codes.length > 0 &&
  html`<form method="get" action="${place}/export" class="card"><input type="hidden" name="team" value="${team}">
<div class="grid">
<div><label for="export-language">${words.language}</label><select id="export-language" name="language">${options}</select></div>
<div><label for="export-alphabet">${files.soundsIn}</label><select id="export-alphabet" name="alphabet">${alphabets.map((name) => html`<option value="${name}">${files.alphabets[name]}</option>`)}</select></div>
</div><p class="row"><button class="plain">${files.export}</button></p></form>`
}
<form method="post" action="${place}/import" enctype="multipart/form-data" class="card">${csrfField(csrf)}<input type="hidden" name="team" value="${team}">
<label for="import-file">${files.fileToImport}</label>
<input id="import-file" name="file" type="file" required accept=".pls,.xml,application/pls+xml" aria-describedby="import-help">
<p class="help" id="import-help">${files.importHelp}</p>
<p class="row"><button>${files.import}</button></p></form>`;
}
