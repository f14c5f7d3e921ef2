/** Refuses some words in comments, strings and pages, and recommends terms of docs/glossary.md instead. */
import type { Finding } from "./rules.ts";

interface RefusedWord {
  readonly word: RegExp;
  readonly better: string;
}

const refusedWords: readonly RefusedWord[] = [
  // This project invented the following words.
  { word: /\bClusterGifts\b|\bgifts\b/i, better: "capabilities" },
  { word: /\broomless\b/i, better: "unschedulable" },
  { word: /\bfooting\b/i, better: "prerequisites" },
  { word: /\bsoloist\b/i, better: "the multi-threaded process" },
  // Figures of speech, and words that a more exact term should replace.
  { word: /\btold\b/i, better: "reported to, called with, or notified of" },
  { word: /\bwhoever\b/i, better: "the subject: the administrator, the client, the operator" },
  { word: /\bnobody\b/i, better: "the subject: no client, no user, no pod" },
  { word: /\bsomebody('s)?\b/i, better: "the subject: a user, another controller" },
  { word: /\btaken up\b/i, better: "applied, or reconciled" },
  { word: /\bin the way\b/i, better: "blocking, with what blocks it" },
  { word: /\bmade anew\b/i, better: "recreated" },
  { word: /\bis there\b/i, better: "exists" },
];

/** Matches the first words of a comment that has no subject. */
const opening = /^\s*(?:\/\*\*|\/\/|\*|#)\s*(?:Of|Told|What|Who|Whose|As|Where)\b/;

/** Files that contain the words on purpose, such as this list and the changelog. */
const exempt = [
  "test/check/words.ts",
  "test/unit/check/words.test.ts",
  "CHANGELOG.md",
  "docs/glossary.md",
  "docs/asyncapi.json",
  "docs/openapi.json",
  // These files contain texts for synthesis or training.
  "test/unit/engine/generator/word-times.test.ts",
  "tools/arcana-training/sentences.ts",
  "tools/bench/chapters/mists.ts",
  "tools/bench/chapters/peers.ts",
  "test/support/audio/texts.ts",
  // This file contains a name that databases store.
  "server/store/unknown-actor.ts",
  "package-lock.json",
];

const checkedFiles = /\.(ts|js|mjs|sh|md|ya?ml|tpl|json)$|(^|\/)(Makefile|Containerfile)$/;

/** Checks one file. In code, only comments and strings are checked. */
export function judgeWords(path: string, text: string): Finding[] {
  if (!checkedFiles.test(path) || exempt.includes(path) || isFixture(path)) return [];
  return text.split("\n").flatMap((content, index) => {
    const prose = isCode(path) ? commentsAndStrings(content) : content;
    const findings = refusedWords.flatMap(({ word, better }) => {
      const found = word.exec(prose)?.[0];
      return found === undefined ? [] : [`contains "${found}": write ${better}.`];
    });
    if (isCode(path) && opening.test(content)) {
      findings.push(
        "starts a comment without a subject: write a full sentence that starts with its subject.",
      );
    }
    return findings.map((message) => ({ path, line: index + 1, message }));
  });
}

const isCode = (path: string) => /\.(ts|js|mjs)$/.test(path);

/** Returns whether a file is a golden file or belongs to another project. */
const isFixture = (path: string) => /(^|\/)(golden|files|previous-release)\//.test(path);

/**
 * Finds comments and strings in a single line: a line of a comment block, the text after `//`, and quoted
 * text.
 */
function commentsAndStrings(line: string): string {
  if (/^\s*(\/\*\*?|\*)/.test(line)) return line;
  const pieces = line.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`?|\/\/.*$/g) ?? [];
  return pieces.join(" ");
}
