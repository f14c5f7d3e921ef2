import { expect, it } from "vitest";
import { drawPackages } from "../../../tools/packages/picture.ts";
import { readSource } from "../../check/source.ts";

it("drawPackages omits arrows that follow from other arrows, and arrows to shared folders", () => {
  const sources = [
    readSource("server/cli/a.ts", 'import "../start/b.ts"; import "../store/c.ts"; import "../../lib/d.ts";'),
    readSource("server/start/b.ts", 'import "../store/c.ts";'),
    readSource("server/store/c.ts", 'import "../../lib/d.ts";'),
    readSource("lib/d.ts", ""),
  ];
  const diagram = drawPackages(sources);
  expect(diagram.match(/^.* --> .*$/gm)).toEqual([
    "  server_cli --> server_start",
    "  server_start --> server_store",
  ]);
  expect(diagram).toContain("server_store[store]");
});
