import { describe, expect, it } from "vitest";
import { judgeWords } from "../../check/words.ts";

const messages = (path: string, text: string) => judgeWords(path, text).map(({ message }) => message);

describe("the rules of words", () => {
  it.each([
    ["lib/a.ts", "/** The listener is told of each change. */", "reported to"],
    ["lib/a.ts", 'const message = "nobody listens";', "the subject"],
    ["lib/a.ts", "/** What is kept of it. */", "full sentence"],
    ["server/a.ts", "// the footing of a pod", "prerequisites"],
    ["docs/a.md", "The roomless pods wait.", "unschedulable"],
  ])("refuse in %s: %s", (path, text, replacement) => {
    expect(messages(path, text)).toContainEqual(expect.stringContaining(replacement));
  });

  it.each([
    ["lib/a.ts", "const told = 1;"],
    ["lib/a.ts", "/** Calls back once after a delay. */"],
    ["test/golden/a.tsv", "nobody told us"],
  ])("accept in %s: %s", (path, text) => {
    expect(messages(path, text)).toEqual([]);
  });
});
