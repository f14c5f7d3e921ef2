import { describe, expect, it } from "vitest";
import { readSource } from "../../check/source.ts";
import { judgeFolders, judgeNames, judgeSizes } from "../../check/structure.ts";

const messages = (findings: readonly { readonly message: string }[]) =>
  findings.map(({ message }) => message);

describe("the rules of structure", () => {
  it("refuse a cycle of folders, with one finding for each arrow of the cycle", () => {
    const sources = [
      readSource("server/a/one.ts", 'import { two } from "../b/two.ts";'),
      readSource("server/b/three.ts", 'import { four } from "../c/four.ts";'),
      readSource("server/c/five.ts", 'import { six } from "../a/six.ts";'),
    ];
    const found = judgeFolders(sources);
    expect(found.map(({ path }) => path)).toEqual([
      "server/a/one.ts",
      "server/b/three.ts",
      "server/c/five.ts",
    ]);
    expect(messages(found)[0]).toContain("server/a → server/b → server/c → server/a");
  });

  it("refuse a cycle between a folder and its parent folder", () => {
    const sources = [
      readSource("server/a/start.ts", 'import { part } from "./parts/part.ts";'),
      readSource("server/a/parts/part.ts", 'import { shared } from "../shared.ts";'),
    ];
    expect(judgeFolders(sources)).toHaveLength(2);
  });

  it("allow cycles of test folders, because tests may import everything", () => {
    const sources = [
      readSource("test/a/one.ts", 'import { two } from "../b/two.ts";'),
      readSource("test/b/two.ts", 'import { three } from "../a/three.ts";'),
    ];
    expect(judgeFolders(sources)).toEqual([]);
  });

  it("refuse a file of more than 500 lines", () => {
    expect(judgeSizes([{ path: "server/long.ts", text: "\n".repeat(501) }])).toHaveLength(1);
    expect(judgeSizes([{ path: "server/long.ts", text: "\n".repeat(500) }])).toEqual([]);
  });

  it("refuse a function of more than 80 lines, and name it", () => {
    const body = "  go();\n".repeat(80);
    const text = `export function first() {\n${body}}\nexport const second = () => {\n${body}};\n`;
    const found = messages(judgeSizes([{ path: "server/long.ts", text }]));
    expect(found).toEqual([
      expect.stringContaining("first has 82"),
      expect.stringContaining("second has 82"),
    ]);
  });

  it("refuse an exported name with two meanings", () => {
    const files = [
      { path: "server/a.ts", text: "export interface Thing {}\nexport const Thing = 1;\n" },
      { path: "operator/b.ts", text: "export type Thing = string;\n" },
    ];
    expect(messages(judgeNames(files))).toContainEqual(expect.stringContaining("as server/a.ts does"));
  });
});
