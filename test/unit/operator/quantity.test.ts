import { describe, expect, test } from "vitest";
import { nanosOf } from "../../../operator/facts/quantity.ts";

describe("a quantity", () => {
  test.each([
    ["1000m", "1"],
    ["0.5", "500m"],
    [".5", "500m"],
    ["1.", "1"],
    [1, "1"],
    ["1.5Gi", "1536Mi"],
    ["1e3", "1k"],
    ["1E3", "1k"],
    ["12e-1", "1200m"],
    ["1E", "1e18"],
    ["0", "0Gi"],
    ["-1", "-1000m"],
    ["1000000n", "1m"],
    ["0.0000000001", "1n"],
  ])("of %s equals %s", (one, other) => {
    expect(nanosOf(one)).toBeDefined();
    expect(nanosOf(one)).toBe(nanosOf(other));
  });

  test.each([
    ["1", "1001m"],
    ["1G", "1Gi"],
    ["1k", "1K"],
  ])("of %s differs from %s", (one, other) => {
    expect(nanosOf(one)).not.toBe(nanosOf(other));
  });

  test.each(["", ".", "m", "1 Gi", "1mm", "abc", "0x10", "1e", null, undefined, {}, true])(
    "%s is not valid",
    (value) => {
      expect(nanosOf(value)).toBeUndefined();
    },
  );
});
