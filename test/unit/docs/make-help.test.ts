import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const lines = readFileSync(join(import.meta.dirname, "../../../Makefile"), "utf8").split("\n");
const longestDescription = 100;

/** The described targets below each heading. */
function helpOf(): Map<string, [target: string, description: string][]> {
  const groups = new Map<string, [string, string][]>();
  let targets: [string, string][] = [];
  for (const line of lines) {
    const [, heading] = /^##@ (.+)$/.exec(line) ?? [];
    const [, target = "", description = ""] = /^([a-z0-9-]+):.*## (.*)$/.exec(line) ?? [];
    if (heading !== undefined) {
      targets = [];
      groups.set(heading, targets);
    } else if (target !== "") targets.push([target, description.replaceAll("$$", "$")]);
  }
  return groups;
}

describe("make help", () => {
  const groups = helpOf();

  it("lists every target under a heading", () => {
    const phony = lines.flatMap((line) => /^\.PHONY: (\S+)$/.exec(line)?.[1] ?? []);
    const listed = [...groups.values()].flat().map(([target]) => target);
    expect(listed.toSorted()).toEqual(phony.toSorted());
    expect([...groups.keys()]).toEqual(["Start here", "Test", "Measure", "Build and release", "Develop"]);
  });

  it("has a short description for each target", () => {
    const long = [...groups.values()]
      .flat()
      .filter(([, description]) => description.length >= longestDescription);
    expect(long).toEqual([]);
  });
});
