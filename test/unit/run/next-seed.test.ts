import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nextSeed, readSeed } from "../../run/seed.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-seed-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the seed of a whole run", () => {
  it("is the given one", () => {
    expect(readSeed("42")).toBe(42);
  });

  it("is a whole number, or refused", () => {
    expect(() => readSeed("monday")).toThrow("SEED must be a whole number, not 'monday'");
  });

  it("grows by one with each run on a machine", () => {
    const file = join(folder, "cache", "test-seed");
    const first = nextSeed(file);
    expect([nextSeed(file), nextSeed(file)]).toEqual([first + 1, first + 2]);
  });

  it("starts at the commit on a fresh machine", () => {
    expect(nextSeed(join(folder, "a"))).toBe(nextSeed(join(folder, "b")));
  });
});
