/** Tests that a release has only images of its own commit, and that its folder replaces no other files. */
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import {
  assembleRelease,
  type ReleasePlan,
  requireOutside,
  requireSameSources,
} from "../../../tools/release/assemble.ts";
import { writeIndex } from "../../../tools/release/image-layout.ts";
import { publishRelease } from "../../../tools/release/publish.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("release-sources");
const root = join(import.meta.dirname, "../../..");
const detailsOf = (revision: string) => ({
  epochSeconds: 1_700_000_000,
  labels: { "org.opencontainers.image.revision": revision, "org.opencontainers.image.version": "1.2.3" },
});

/** Writes the result of `release images` of a commit. */
function build(revision: string, parent = mkdtempSync(join(folder, "build-"))): string {
  const layout = join(parent, "images/server");
  mkdirSync(layout, { recursive: true });
  writeIndex(layout, [], detailsOf(revision));
  return parent;
}

describe("a release", () => {
  it("has only images of its commit, which its provenance names", () => {
    const builds = [build("c0ffee"), build("c0ffee")];
    expect(() => requireSameSources(builds, detailsOf("c0ffee"))).not.toThrow();
    expect(() => requireSameSources([...builds, build("decade")], detailsOf("c0ffee"))).toThrow(
      "org.opencontainers.image.revision=decade, and the release has c0ffee",
    );
  });

  it("does not delete the builds if they are below its folder", async () => {
    const out = mkdtempSync(join(folder, "out-"));
    const inside = build("c0ffee", join(out, "build"));
    const plan: ReleasePlan = {
      ...{ version: "1.2.3", registry: "registry.example/tts", details: detailsOf("c0ffee") },
      ...{ sources: root, folder: out },
    };
    const programs = { run: () => Promise.reject(new Error("no program runs")) };
    await expect(assembleRelease(programs, plan, [inside])).rejects.toThrow(`it contains ${inside}`);
    expect(existsSync(join(inside, "images/server/index.json"))).toBe(true);
  });

  it.each([root, join(root, ".."), "/"])("does not replace the sources: --out %s", (out) => {
    expect(() => requireOutside(out, [root])).toThrow("set --out to another folder");
  });

  it("has no images of changes that are not committed", async () => {
    const bin = mkdtempSync(join(folder, "bin-"));
    writeFileSync(join(bin, "git"), '#!/bin/sh\n[ "$1" != status ] || echo " M server/main.ts"\n');
    chmodSync(join(bin, "git"), 0o755);
    const words = [join(root, "tools/release/main.ts"), "images", "--out", join(folder, "none")];
    const env = { ...process.env, PATH: `${bin}:/usr/bin:/bin` };
    await expect(
      promisify(execFile)(process.execPath, words, { env, timeout: 60_000 }),
    ).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("have changes that are not committed"),
    });
  });

  it("has no changes by the commands of its page, which would prevent the publication", () => {
    const read = (path: string) => readFileSync(join(root, path), "utf8");
    expect(read(".gitignore").split("\n")).toEqual(
      expect.arrayContaining(["/.run/", "/cosign.key", "/cosign.pub"]),
    );
    const page = read("docs/how-to/release.md");
    const folders = [...page.matchAll(/ BUILDS=(\S+)|cp -r \S+ (\S+)/g)].flatMap(([, builds, copy]) =>
      (builds ?? copy ?? "").split(","),
    );
    expect(folders).toHaveLength(3);
    expect(folders.filter((path) => !path.startsWith(".run/"))).toEqual([]);
  });

  it("sets the tags of images after all signatures", async () => {
    const calls: string[] = [];
    const call = async (...words: string[]) => void calls.push(words.join(" "));
    const programs = {
      run: async (program: string, [command = "", target]: readonly string[]) => {
        await call(program, command);
        if (command === "digest" && target === "r/server:1.2.3") throw new Error("MANIFEST_UNKNOWN");
        return "sha256:c";
      },
    };
    const signer = {
      sign: () => call("sign"),
      attest: () => call("attest"),
      signFile: () => call("sign file"),
    };
    const plan = {
      ...{ version: "1.2.3", registry: "registry.example/tts", details: detailsOf("c0ffee") },
      ...{ sources: root, folder: mkdtempSync(join(folder, "publish-")) },
    };
    const image = { role: "server", layout: "", repository: "r/server", digest: "sha256:a", platforms: [] };
    const release = { images: [image], charts: ["tts-operator-1.2.3.tgz"], checksums: "SHA256SUMS" };
    const facts = { version: "1.2.3", commit: "c0ffee", source: "", bases: [], builder: "", startedAt: "" };
    await publishRelease(programs, signer, plan, release, facts, () => new Date(0));
    expect(calls.indexOf("crane tag")).toBe(calls.length - 1);
  });
});
