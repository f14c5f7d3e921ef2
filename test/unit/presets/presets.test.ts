import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { findVoice } from "../../../config/contract/voices.ts";
import { loadPreset, presetFolder, presetNames } from "../../../server/presets/preset.ts";
import { readDigests, requireAcceptance, withDigests } from "../../../server/presets/resolve.ts";
import { type Preset, readPreset } from "../../../server/presets/schema.ts";

const digest = "a".repeat(64);
const piper = loadPreset("piper-en_US-ljspeech-high");
const joe = loadPreset("piper-en_US-joe-medium");
const orpheus = loadPreset("orpheus-3b");

describe("each preset of the repository", () => {
  test.each(presetNames())("%s is valid, and has a notice and voice names of its own", (id) => {
    const preset = loadPreset(id);
    for (const name of preset.copies)
      expect(existsSync(new URL(name, presetFolder(preset))), name).toBe(true);
    expect(preset.copies).toContain("NOTICE");
    const { manifest } = preset;
    if (manifest.kind !== "piper" && manifest.kind !== "kokoro") return;
    expect(manifest.voices.filter((voice) => findVoice(voice.id) !== undefined)).toEqual([]);
    expect(
      manifest.voices.map(({ language }) => language).filter((one) => !preset.languages.includes(one ?? "")),
    ).toEqual([]);
    expect(preset.files.find(({ path }) => path === manifest.model)?.sha256).toBe(manifest.sha256);
  });

  test("can be fetched by the tests, or is marked as not tested", () => {
    const tested = presetNames()
      .map(loadPreset)
      .filter((preset) => preset.tested);
    expect(tested.map(({ id }) => id)).toEqual(["kokoro-82m", "piper-en_US-joe-medium"]);
    for (const { files } of tested) {
      // The tests reach only package registries.
      for (const { sources, path } of files)
        expect(
          sources.some(({ kind }) => kind !== "url"),
          path,
        ).toBe(true);
    }
  });
});

describe("a preset", () => {
  const [model, config] = piper.files;
  const source = { kind: "url", url: "https://example.com/a" };

  test.each<[string, object | string, string]>([
    ["that is not JSON", "{", "x/preset.json: the file is not JSON"],
    ["with an unknown field", { licence: {} }, "x/preset.json: /licence is not a field of a preset"],
    [
      "with an unknown field of the license",
      { license: { ...piper.license, spdx: "MIT" } },
      "/license/spdx is not a field of a preset",
    ],
    ["with an unknown engine", { engine: "whisper" }, "/engine must be equal to one of the allowed values"],
    ["in a folder with another name", { id: "y" }, '/id is "y"; it must be the name of the folder'],
    [
      "of a non-commercial model without a reason",
      { license: { ...piper.license, note: undefined, commercial: false } },
      "/license/note is missing; it must state why commercial use is not allowed",
    ],
    [
      "with a digest in capital letters",
      { files: [{ ...model, sha256: digest.toUpperCase() }, config] },
      "/files/0/sha256",
    ],
    [
      "with a source without TLS",
      { files: [{ ...model, sources: [{ kind: "url", url: "http://example.com/a" }] }, config] },
      "/files/0/sources/0",
    ],
    [
      "with the same file twice",
      { files: [model, config, config] },
      "/files lists en_US-ljspeech-high.onnx.json twice",
    ],
    [
      "with a digest, but without a size",
      { files: [{ ...model, bytes: null }, config] },
      "/files/0/bytes must be known if the digest is known",
    ],
    [
      "without the file of its manifest",
      { files: [model] },
      "/manifest names en_US-ljspeech-high.onnx.json, which is not in /files or /copies",
    ],
    ["with the manifest of another engine", { engine: "kokoro" }, "/manifest must have the kind kokoro"],
    [
      "with an invalid manifest",
      { manifest: { ...piper.manifest, voices: [] } },
      "/manifest must not have fewer than 1 items",
    ],
    [
      "of mounted voices with a repository",
      { repository: { url: "https://example.com/a", required: ["a"], gated: false } },
      "/repository is allowed only with the engine vllm",
    ],
    [
      "with a path outside of its folder",
      { files: [{ path: "../a", bytes: 1, sha256: digest, sources: [source] }] },
      "/files/0/path",
    ],
    [
      "of vLLM with digests in the manifest",
      { engine: "vllm", manifest: { ...orpheus.manifest, sha256: {} } },
      "/manifest must not contain sha256",
    ],
  ])("%s is refused, and the message names the cause", (_, change, message) => {
    const json = typeof change === "string" ? change : JSON.stringify({ ...piper, id: "x", ...change });
    expect(() => readPreset("x", json)).toThrow(message);
  });
});

describe("the license of a preset", () => {
  test("that allows commercial use needs no acceptance", () => {
    expect(() => requireAcceptance(piper, false)).not.toThrow();
  });

  test("that does not allow commercial use must be accepted", () => {
    expect(() => requireAcceptance(joe, false)).toThrow(
      /the license of piper-en_US-joe-medium does not allow commercial use: CC0-1\.0 \(https:.*\)\. .*allows only research\. Read the license, and add --accept-license/,
    );
    expect(() => requireAcceptance(joe, true)).not.toThrow();
  });
});

describe("digests of a user", () => {
  const all = { "config.json": digest, "tokenizer.json": digest, "decoder.onnx": digest };

  test("have the format of sha256sum", () => {
    const other = "b".repeat(64);
    expect(readDigests(`# weights\n${digest}  a.bin\n\n${other} *./sub/b c.json\r\n`)).toEqual({
      "a.bin": digest,
      "sub/b c.json": other,
    });
  });

  test.each([
    "nothing",
    `${digest}`,
    `${digest}  ../a`,
    `${digest}  /a`,
    `${digest}  a/../b`,
    `${"A".repeat(64)}  a`,
  ])("are refused with the line %j", (line) => {
    expect(() => readDigests(`${digest}  first\n${line}`)).toThrow(
      "line 2 of the digests must be 64 hexadecimal",
    );
  });

  test("complete a preset, and name the files of its repository", () => {
    const { files } = withDigests(orpheus, { ...all, "model-00001-of-00002.safetensors": digest });
    expect(files.map(({ path, sha256 }) => [path, sha256])).toEqual([
      ["decoder.onnx", digest],
      ["config.json", digest],
      ["tokenizer.json", digest],
      ["model-00001-of-00002.safetensors", digest],
    ]);
    const base = "https://huggingface.co/canopylabs/orpheus-3b-0.1-ft/resolve/main";
    expect(files[1]?.sources).toEqual([{ kind: "url", url: `${base}/config.json` }]);
  });

  test.each<[string, Preset, Record<string, string>, string]>([
    [
      "are missing",
      orpheus,
      { "config.json": digest },
      "of orpheus-3b are not known to svc-tts: decoder.onnx, tokenizer.json. State them with --digests FILE",
    ],
    [
      "name a file that the preset does not have",
      piper,
      { "b.onnx": digest },
      "piper-en_US-ljspeech-high has no file b.onnx; remove the line",
    ],
    [
      "contradict a known digest",
      piper,
      { "en_US-ljspeech-high.onnx": digest },
      "the digest of en_US-ljspeech-high.onnx differs from the digest that svc-tts knows",
    ],
  ])("that %s are refused", (_, preset, digests, message) => {
    expect(() => withDigests(preset, digests)).toThrow(message);
  });
});
