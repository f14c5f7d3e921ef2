import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");
const folder = "docs/evidence";
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** A string that is the first argument of a call and precedes a function, or the first element of a row. */
const title = /\(\s*(["`])((?:(?!\1).)*)\1\s*,\s*(?:\{[^}]*\},\s*)?(?:async\s*)?\(|\[\s*"([^"]*)"/g;
/** A link, a quotation, or the label of an earlier link before a quotation. */
const reference = /\[[^\]]+\]\(([^)]*)\)|"([^"]+)"|\b([a-z][a-z0-9-]+)(?=,? ")/g;

const titles = new Map<string, string[]>();

function titlesOf(path: string): string[] {
  const known = titles.get(path);
  if (known !== undefined) return known;
  const found = [...read(path).matchAll(title)].map(([, , call, row]) => call ?? row ?? "");
  titles.set(path, found);
  return found;
}

/** Returns the quotations of a table row that no test title of the file before them contains. */
function staleQuotations(row: string, links: ReadonlyMap<string, string[]>): string[] {
  let files: readonly string[] = [];
  const stale: string[] = [];
  for (const [, target, quotation, label] of (row.split("|").at(-2) ?? "").matchAll(reference)) {
    if (target !== undefined) files = [join(folder, target)].filter((path) => path.endsWith(".test.ts"));
    else if (label !== undefined) files = links.get(label) ?? files;
    else if (quotation !== undefined && !files.some((path) => hasTitle(path, quotation)))
      stale.push(quotation);
  }
  return stale;
}

function hasTitle(path: string, quotation: string): boolean {
  return titlesOf(path).some((text) => text.includes(quotation));
}

it.each(globSync(`${folder}/*.md`, { cwd: root }))("%s quotes only parts of test titles", (page) => {
  const links = new Map<string, string[]>();
  for (const [, label = "", target = ""] of read(page).matchAll(/\[([^\]]+)\]\(([^)]*\.test\.ts)\)/g))
    links.set(label, [...(links.get(label) ?? []), join(folder, target)]);
  const rows = read(page)
    .split("\n")
    .filter((line) => line.startsWith("|"));
  expect(rows.flatMap((row) => staleQuotations(row, links))).toEqual([]);
});
