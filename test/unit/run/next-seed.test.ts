import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nextSeed, readSeed } from "../../run/seed.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("seed");

describe("the seed of a run of all tests", () => {
  it("is read from SEED, which must be an integer", () => {
    expect(readSeed("42")).toBe(42);
    expect(() => readSeed("monday")).toThrow("SEED must be a whole number, not 'monday'");
  });

  it("increases by one with each run on a machine", () => {
    const file = join(folder, "cache", "test-seed");
    const first = nextSeed(file);
    expect([nextSeed(file), nextSeed(file)]).toEqual([first + 1, first + 2]);
  });

  it("is derived from the commit on a machine without earlier runs", () => {
    expect(nextSeed(join(folder, "a"))).toBe(nextSeed(join(folder, "b")));
  });
});
