import { describe, expect, it } from "vitest";
import { base64Length, base64Of } from "../../../server/api/respond/json.ts";

describe("base64Of", () => {
  it.each([
    [[]],
    [[1]],
    [[2]],
    [[44, 0]],
    [[44, 1]],
    [[44, 100_000]],
    [[1, 1, 1, 1]],
    [[2, 2, 2]],
    [[0, 1, 49_151]],
    [[49_152, 1, 49_153]],
    [[200_000]],
  ])("encodes parts of %j bytes like their concatenation", (lengths) => {
    let value = 0;
    const parts = lengths.map((length) =>
      Uint8Array.from({ length }, () => (value = (value * 31 + 7) & 255)),
    );
    const whole = Buffer.concat(parts);
    expect([...base64Of(parts)].join("")).toBe(whole.toString("base64"));
    expect(base64Length(whole.length)).toBe(whole.toString("base64").length);
  });
});
