import type { Person } from "../store/accounts.ts";
import { type Content, type Html, html } from "./html.ts";

export interface Page {
  readonly title: string;
  /** Who looks at it; undefined before the sign-in. */
  readonly visitor?: Visitor | undefined;
  /** Path of its place in the navigation. */
  readonly place?: string;
  readonly content: Content;
  /** A module of the assets. */
  readonly script?: string;
}

export interface Visitor {
  readonly person: Person;
  /** What every form of this session sends along. */
  readonly csrf: string;
}

export const base = "/dashboard";

interface Place {
  readonly path: string;
  readonly name: string;
  readonly roles: readonly Person["role"][];
}

const places: readonly Place[] = [
  { path: `${base}/keys`, name: "Keys", roles: ["owner", "member", "viewer"] },
  { path: `${base}/playground`, name: "Playground", roles: ["owner", "member"] },
  { path: `${base}/words`, name: "Words", roles: ["owner", "member"] },
  { path: `${base}/usage`, name: "Usage", roles: ["owner", "member", "viewer"] },
  { path: `${base}/people`, name: "People", roles: ["owner"] },
  { path: `${base}/changes`, name: "Changes", roles: ["owner"] },
];

/** A whole page. */
export function layout({ title, visitor, place, content, script }: Page): string {
  return `<!doctype html>${
    html`<html lang="en">
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
<a class="skip" href="#content">Skip to the content</a>
<header>
<p class="brand">svc-tts</p>
${visitor && navigation(visitor, place)}
</header>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${content}
</main>
</body>
</html>`.text
  }`;
}

function navigation({ person, csrf }: Visitor, current: string | undefined): Html {
  const links = places
    .filter(({ roles }) => roles.includes(person.role))
    .map(
      ({ path, name }) =>
        html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${name}</a></li>`,
    );
  return html`<nav aria-label="Pages"><ul>${links}</ul></nav>
<form method="post" action="${base}/logout" class="who">
${csrfField(csrf)}
<span>${person.name} <span class="quiet">(${person.role}${person.team !== undefined && ` of ${person.team}`})</span></span>
<button class="plain">Sign out</button>
</form>`;
}

export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}">`;
}

/** What went wrong, where a screen reader says it at once. */
export function alert(message: string | undefined): Content {
  return message !== undefined && html`<p class="alert" role="alert">${message}</p>`;
}

/** To the minute, in UTC; a dash where there is none. */
export function time(timeMs: number | undefined): Html {
  if (timeMs === undefined) return html`–`;
  const text = new Date(timeMs).toISOString();
  return html`<time datetime="${text}">${text.slice(0, 16).replace("T", " ")}</time>`;
}
