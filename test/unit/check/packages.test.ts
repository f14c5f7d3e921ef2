import { expect, it } from "vitest";
import { drawPackages } from "../../../tools/packages/picture.ts";
import { readSource } from "../../check/source.ts";

it("the picture of packages leaves out arrows that follow from others, and those to shared folders", () => {
  const sources = [
    readSource("server/cli/a.ts", 'import "../start/b.ts"; import "../store/c.ts"; import "../../lib/d.ts";'),
    readSource("server/start/b.ts", 'import "../store/c.ts";'),
    readSource("server/store/c.ts", 'import "../../lib/d.ts";'),
    readSource("lib/d.ts", ""),
  ];
  const drawn = drawPackages(sources);
  expect(drawn.match(/^.* --> .*$/gm)).toEqual([
    "  server_cli --> server_start",
    "  server_start --> server_store",
  ]);
  expect(drawn).toContain("server_store[store]");
});
