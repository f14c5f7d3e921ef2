import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { heldBy, specification, tableRows } from "../../integration/contract/rules.ts";

const root = join(import.meta.dirname, "../../..");
const testFiles = new Set(heldBy.map(([, holder]) => holder).filter((holder) => holder.startsWith("test/")));

describe("the contract's rules", () => {
  it.each(Object.entries(tableRows))("include all rows of table %s of the specification", (table, rows) => {
    expect(Object.keys(specification).filter((id) => id.startsWith(table))).toHaveLength(rows);
  });

  // `heldRules` fails a file whose tests do not exercise every rule that `heldBy` assigns to the file.
  it.each([...testFiles])("are recorded by %s with heldRules", (file) => {
    expect(existsSync(join(root, file))).toBe(true);
    expect(readFileSync(join(root, file), "utf8")).toContain("= heldRules(import.meta.filename);");
  });
});
