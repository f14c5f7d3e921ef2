/** Tests which requests to a registry publish a release. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { AssembledRelease, ReleasePlan } from "../../../tools/release/assemble.ts";
import type { Programs } from "../../../tools/release/programs.ts";
import { publishRelease } from "../../../tools/release/publish.ts";
import type { Signer } from "../../../tools/release/signer.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("publish");
const digest = `sha256:${"1".repeat(64)}`;
const repository = "registry.example/tts/server";

/** Publishes a release, and returns the commands. `published` is the digest of the tag, if it exists. */
async function publish(published: string | undefined): Promise<string[]> {
  const commands: string[] = [];
  const programs: Programs = {
    run: async (program, [command = "", ...words]) => {
      commands.push(`${program} ${command} ${words.at(-1)}`);
      if (command === "digest" && !words[0]?.includes("/charts/")) {
        if (published === undefined) throw new Error("MANIFEST_UNKNOWN");
        return `${published}\n`;
      }
      return command === "digest" ? `sha256:${"2".repeat(64)}\n` : "";
    },
  };
  const note = (command: string) => async (reference: string) => {
    commands.push(`${command} ${reference}`);
  };
  const signer: Signer = { sign: note("sign"), attest: note("attest"), signFile: note("sign-file") };
  const plan: ReleasePlan = {
    version: "1.2.3",
    registry: "registry.example/tts",
    details: { epochSeconds: 0, labels: {} },
    sources: folder,
    folder,
  };
  const release: AssembledRelease = {
    images: [{ role: "server", layout: "layout", repository, digest, platforms: [] }],
    charts: [join(folder, "tts-operator-1.2.3.tgz")],
    checksums: "SHA256SUMS",
  };
  const facts = { version: "1.2.3", commit: "c", source: "s", startedAt: "t", bases: [], builder: "b" };
  await publishRelease(programs, signer, plan, release, facts, () => new Date(0));
  return commands;
}

describe("a release", () => {
  it.each<[string, string | undefined]>([
    ["is new", undefined],
    ["was interrupted after it was tagged", digest],
  ])("that %s gets the tags of its images after all signatures", async (_what, published) => {
    const commands = await publish(published);
    const tag = commands.indexOf("crane tag 1.2.3");
    expect(tag).toBeGreaterThan(0);
    expect(commands.findLastIndex((command) => /^(sign|attest) /.test(command))).toBeLessThan(tag);
  });

  it("replaces no image of a published version", async () => {
    await expect(publish(`sha256:${"3".repeat(64)}`)).rejects.toThrow(
      `${repository}:1.2.3 exists, and has the digest sha256:333`,
    );
  });
});
