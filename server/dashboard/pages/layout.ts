import type { FastifyReply, FastifyRequest } from "fastify";
import type { User } from "../../store/accounts/accounts.ts";
import { type Content, type Html, html } from "../html/html.ts";
import type { Texts } from "../languages/english.ts";
import { type Locale, localeOf, type UiLanguage, uiLanguages } from "../languages/locale.ts";

export interface Page {
  readonly title: string;
  /** The path of the page in the navigation. */
  readonly place?: string;
  readonly content: Content;
  /** The file name of a script in `assets`. The script reads its texts from the page. */
  readonly script?: string;
}

export interface SignedInUser {
  readonly person: User;
  /** The CSRF token of the session, which every form contains. */
  readonly csrf: string;
}

export const base = "/dashboard";

interface Place {
  readonly path: string;
  readonly name: (words: Texts) => string;
  readonly roles: readonly User["role"][];
}

const places: readonly Place[] = [
  { path: `${base}/keys`, name: ({ frame }) => frame.keys, roles: ["owner", "member", "viewer"] },
  { path: `${base}/playground`, name: ({ frame }) => frame.playground, roles: ["owner", "member"] },
  { path: `${base}/words`, name: ({ frame }) => frame.words, roles: ["owner", "member"] },
  { path: `${base}/usage`, name: ({ frame }) => frame.usage, roles: ["owner", "member", "viewer"] },
  { path: `${base}/people`, name: ({ frame }) => frame.users, roles: ["owner"] },
  { path: `${base}/changes`, name: ({ frame }) => frame.auditLog, roles: ["owner"] },
];

/** Sends a page in the user's language, with the navigation for the role of the signed-in user. */
export function sendPage(reply: FastifyReply, { title, place, content, script }: Page): FastifyReply {
  const { request } = reply;
  const { visit: visitor } = request;
  const locale = localeOf(request);
  const { frame } = locale.words;
  const page = html`<html lang="${locale.tag}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · svc-tts</title>
<link rel="stylesheet" href="${base}/assets/style.css">
<link rel="icon" href="${base}/assets/icon.svg" type="image/svg+xml">
${script !== undefined && html`<script type="module" src="${base}/assets/${script}"></script>`}
</head>
<body>
<a class="skip" href="#content">${frame.skip}</a>
<header>
<p class="brand">svc-tts</p>
${visitor && navigation(visitor, place, locale)}
${languageSwitch(request, place, locale.language)}
</header>
<main id="content" tabindex="-1"${script !== undefined && html` data-words="${JSON.stringify(locale.words.client)}"`}>
<h1>${title}</h1>
${content}
</main>
</body>
</html>`;
  return reply
    .type("text/html; charset=utf-8")
    .header("content-language", locale.tag)
    .send(`<!doctype html>${page.text}`);
}

function navigation({ person, csrf }: SignedInUser, current: string | undefined, { words }: Locale): Html {
  const { frame } = words;
  const links = places
    .filter(({ roles }) => roles.includes(person.role))
    .map(
      ({ path, name }) =>
        html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${name(words)}</a></li>`,
    );
  return html`<nav aria-label="${frame.pages}"><ul>${links}</ul></nav>
<form method="post" action="${base}/logout" class="who">
${csrfField(csrf)}
<span>${person.name} <span class="quiet">(${frame.role(person.role, person.team)})</span></span>
<a href="${base}/account"${current === `${base}/account` && html` aria-current="page"`}>${frame.account}</a>
<button class="plain">${frame.signOut}</button>
</form>`;
}

/** Creates a button for each other language. A button shows the name of the language in the language itself. */
function languageSwitch(request: FastifyRequest, place: string | undefined, current: UiLanguage): Html {
  const others = Object.entries(uiLanguages).filter(([code]) => code !== current);
  return html`<form method="post" action="${base}/language" class="languages">
<input type="hidden" name="back" value="${addressOf(request, place)}">
${others.map(([code, { name }]) => html`<button class="plain" name="language" value="${code}" lang="${code}">${name}</button>`)}
</form>`;
}

/**
 * Returns the address of this page for the language switch. The response to a form and the callback of single sign-on
 * cannot be loaded again, so `place` replaces their address.
 */
function addressOf({ method, url }: FastifyRequest, place: string | undefined): string {
  return method === "GET" && !url.startsWith(`${base}/oidc/`) ? url : (place ?? base);
}

export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}">`;
}

/** Shows an error, which screen readers announce immediately. */
export function alert(message: string | undefined): Content {
  return message !== undefined && html`<p class="alert" role="alert">${message}</p>`;
}

/** Shows a time in UTC without seconds, or a dash if there is no time. */
export function time(timeMs: number | undefined, locale: Locale): Html {
  if (timeMs === undefined) return html`–`;
  return html`<time datetime="${new Date(timeMs).toISOString()}">${locale.time(timeMs)}</time>`;
}
