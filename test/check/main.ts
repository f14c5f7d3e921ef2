/**
 * `make check` runs this file. It reads every file that git tracks or would add, and prints the violations of
 * the project's rules.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { type Finding, judge, judgeText } from "./rules.ts";
import { readSource } from "./source.ts";
import { judgeFolders, judgeNames, judgeSizes } from "./structure.ts";
import { judgeTests, testRules } from "./test-rules.ts";
import { judgeWords } from "./words.ts";

const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
const paths = listed
  .toString()
  .split("\0")
  .filter((path) => path !== "" && existsSync(path));
const texts = paths.map((path) => ({ path, text: readFileSync(path, "utf8") }));
const typescript = texts.filter(({ path }) => path.endsWith(".ts"));
const sources = typescript.map(({ path, text }) => readSource(path, text));
const findings: Finding[] = [
  ...judge(sources),
  ...judgeFolders(sources),
  ...judgeSizes(typescript),
  ...judgeNames(typescript),
  ...judgeTests(typescript, Object.values(testRules)),
  ...texts
    .filter(({ text }) => !text.includes("\0"))
    .flatMap(({ path, text }) => [...judgeText(path, text), ...judgeWords(path, text)]),
];
for (const { path, line, message } of findings) console.error(`${path}:${line} ${message}`);
console.log(
  `rules of the project: ${sources.length} TypeScript files, ${paths.length} files in total, findings: ${findings.length}`,
);
process.exitCode = findings.length > 0 ? 1 : 0;
