import { describe, expect, it } from "vitest";
import { csv } from "../../../server/dashboard/html/csv.ts";

describe("comma-separated values", () => {
  it("quote characters that would end a cell", () => {
    expect(csv([["a", 'b "c"', "d,e", "f\ng", -1]])).toBe('a,"b ""c""","d,e","f\ng",-1\r\n');
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])(
    "let no spreadsheet compute %j",
    (text) => {
      expect(csv([[text]])).toMatch(/^"?'/);
    },
  );
});
