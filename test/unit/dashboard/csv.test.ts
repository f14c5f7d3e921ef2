import { describe, expect, it } from "vitest";
import { csv } from "../../../server/dashboard/html/csv.ts";

describe("exported comma-separated values", () => {
  it("quote cells with commas, quotes or line breaks", () => {
    expect(csv([["a", 'b "c"', "d,e", "f\ng", -1]])).toBe('a,"b ""c""","d,e","f\ng",-1\r\n');
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])(
    "escape %j, so that a spreadsheet does not compute it",
    (text) => {
      expect(csv([[text]])).toMatch(/^"?'/);
    },
  );
});
