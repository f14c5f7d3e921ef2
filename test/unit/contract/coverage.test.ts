import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decisions, heldElsewhere, specification, tableRows } from "../../integration/contract/rules.ts";

const root = join(import.meta.dirname, "../../..");
const folder = join(root, "test/integration/contract");
const sources = readdirSync(folder)
  .filter((name) => name.endsWith(".ts") && name !== "rules.ts")
  .map((name) => readFileSync(join(folder, name), "utf8"))
  .join("\n");
const cited = new Set([...sources.matchAll(/"([^"\n]+)"/g)].map(([, text]) => text));

describe("the contract's rules", () => {
  it.each(Object.entries(tableRows))("have all rows of the specification's table %s", (table, rows) => {
    expect(Object.keys(specification).filter((id) => id.startsWith(table))).toHaveLength(rows);
  });

  it.each(Object.keys({ ...specification, ...decisions }))(
    "%s is held by a row, or by another test",
    (id) => {
      expect({ id, held: cited.has(id) || Object.hasOwn(heldElsewhere, id) }).toEqual({ id, held: true });
    },
  );

  it.each(Object.entries(heldElsewhere))("%s is held by %s, which is there, and by no row", (id, where) => {
    expect(cited.has(id)).toBe(false);
    if (where.startsWith("test/")) expect(existsSync(join(root, where))).toBe(true);
  });
});
