import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, symlinkSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CachePlan, readCacheResult } from "../../../../config/contract/model-cache.ts";
import { readFetchProgress } from "../../../../operator/reconcile/fetch-progress.ts";
import { fillCache } from "../../../../server/cache/fill.ts";
import { FillProgress } from "../../../../server/cache/progress.ts";
import { claimPreset, removeSurplus } from "../../../../server/cache/removal.ts";
import { cacheCommand } from "../../../../server/cli/cache.ts";
import { eventually } from "../../../support/eventually.ts";
import { leasePort } from "../../../support/port-lease.ts";
import { startTestApi } from "../../../support/server/api-tier.ts";
import { runInProcess } from "../../../support/server/command-line.ts";
import { FileServer } from "../../../support/server/file-server.ts";
import { modelTier } from "../../../support/server/model-tier.ts";
import { VoicesFolder } from "../../../support/voices/folder.ts";

let server: FileServer;
let folder: string;
/** The damaged records in the log. */
let warnings: string[];

beforeEach(async () => {
  warnings = [];
  server = await FileServer.start();
  folder = await mkdtemp(join(tmpdir(), "svc-tts-model-cache-"));
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const main = join(import.meta.dirname, "../../../../server/main.ts");
const digestOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** Puts a file on the server, and returns its source. */
function publish(name: string, bytes = randomBytes(10_000)) {
  server.files.set(`/${name}`, bytes);
  return { url: `${server.url}/${name}`, sha256: digestOf(bytes) };
}

async function fill(plan: CachePlan, env: Record<string, string> = {}) {
  const progress = new FillProgress(() => performance.now());
  const warn = (fields: { record?: string }) => void (fields.record && warnings.push(fields.record));
  const log = { info: () => undefined, warn };
  const signal = new AbortController().signal;
  const now = () => Date.parse("2026-01-01T00:00:00Z");
  const filled = await fillCache(plan, { folder, env, log, progress, signal, now, tries: 2, pauseMs: 1 });
  return { filled, progress: progress.report };
}

const has = (path: string) => existsSync(join(folder, path));

describe("the cache", () => {
  it.each<[string, string]>([
    ["of the file", "a.bin"],
    ["of a folder of the file", "nora"],
    ["of the state", ".fetch"],
    ["of the part of the file", ".fetch/nora/a.bin.partial"],
    ["of the preset", "kokoro-82m"],
    ["inside the folder of the preset", ".kokoro-82m.partial/model.onnx"],
  ])("is not filled through a symbolic link that leads outside the volume: %s", async (_what, link) => {
    const outside = await mkdtemp(join(tmpdir(), "svc-tts-outside-"));
    try {
      await writeFile(join(outside, "kept"), "a file of another volume");
      await mkdir(dirname(join(folder, link)), { recursive: true });
      await symlink(link.endsWith("bin") ? join(outside, "missing") : outside, join(folder, link));
      const sources = [publish("a.bin"), { ...publish("b.bin"), path: "nora/a.bin" }];
      await expect(fill({ preset: "kokoro-82m", sources })).rejects.toThrow(
        new RegExp(`${link} is a symbolic link to ${outside}.*remove the link`),
      );
      expect(await readdir(outside)).toEqual(["kept"]);
    } finally {
      await rm(outside, { recursive: true });
    }
  });

  it.each([".fetch/b.bin.partial", ".fetch/b.bin.partial.json", ".fetch/b.bin.json"])(
    "is not filled through a symbolic link that another pod creates during a download: %s",
    async (link) => {
      const outside = await mkdtemp(join(tmpdir(), "svc-tts-outside-"));
      try {
        const sources = [publish("a.bin"), publish("b.bin")];
        server.rule = ({ url }) => {
          if (url === "/a.bin") symlinkSync(join(outside, "missing"), join(folder, link));
          return false;
        };
        await expect(fill({ sources })).rejects.toThrow(`${link} is a symbolic link to ${outside}`);
        expect(await readdir(outside)).toEqual([]);
      } finally {
        await rm(outside, { recursive: true });
      }
    },
  );

  it("is not filled through a symbolic link to itself", async () => {
    await symlink("a.bin", join(folder, "a.bin"));
    await expect(fill({ sources: [publish("a.bin")] })).rejects.toThrow(
      "a.bin is a symbolic link to a.bin, which does not exist; remove the link",
    );
  });

  it("is filled through a symbolic link inside the volume", async () => {
    await mkdir(join(folder, "real"));
    await symlink("real", join(folder, "nora"));
    await fill({ sources: [{ ...publish("a.bin"), path: "nora/a.bin" }] });
    expect(has("real/a.bin")).toBe(true);
  });

  it("is filled, and a changed plan fetches only what is missing and removes what it does not name", async () => {
    const [a, b, c] = [publish("a.bin"), { ...publish("b.bin"), path: "nora/b.bin" }, publish("c.bin")];
    await writeFile(join(folder, "mine.bin"), "a file of the user");
    expect(await fill({ sources: [a, b] })).toEqual({
      filled: { files: 2, bytes: 20_000, fetched: 2, removed: 0 },
      progress: {
        files: 2,
        totalFiles: 2,
        bytes: 20_000,
        totalBytes: 20_000,
        bytesPerSecond: expect.any(Number),
      },
    });
    const requests = server.requests.length;
    expect((await fill({ sources: [a, c] })).filled).toMatchObject({ files: 2, fetched: 1, removed: 1 });
    expect(server.requests.slice(requests).map(({ path }) => path)).toEqual(["/c.bin"]);
    expect(["a.bin", "c.bin", "mine.bin", "nora"].map(has)).toEqual([true, true, true, false]);
    expect((await fill({ sources: [a, c] })).filled).toMatchObject({ fetched: 0, removed: 0 });
  });

  it("keeps the files of the earlier plan if the next plan cannot be fetched, and removes them later", async () => {
    const a = publish("a.bin");
    await fill({ sources: [a] });
    const b = { ...publish("b.bin"), sha256: "0".repeat(64) };
    await expect(fill({ sources: [b] })).rejects.toMatchObject({ problem: "DigestMismatch" });
    expect(has("a.bin")).toBe(true);
    expect((await fill({ sources: [publish("b.bin")] })).filled).toMatchObject({ removed: 1 });
    expect(["a.bin", "b.bin"].map(has)).toEqual([false, true]);
  });

  it("reads the credentials of each source from variables with the prefix of the source", async () => {
    const [a, b] = [publish("a.bin"), publish("b.bin")];
    const sources = [
      { ...a, credentials: "SOURCE_0_" },
      { ...b, credentials: "SOURCE_1_" },
    ];
    await fill({ sources }, { SOURCE_0_FETCH_AUTHORIZATION: "one", SOURCE_1_FETCH_AUTHORIZATION: "two" });
    expect(server.requests.map(({ authorization }) => authorization)).toEqual(["one", "two"]);
  });

  it("is not filled from two sources with the same file", async () => {
    const a = publish("a.bin");
    await expect(fill({ sources: [a, { ...publish("x/a.bin") }] })).rejects.toThrow(
      /a\.bin comes from two sources/,
    );
    expect(has("a.bin")).toBe(false);
  });

  it("never removes a file outside of its folder", async () => {
    const victim = join(folder, "..", `victim-of-${process.pid}.bin`);
    await writeFile(victim, "data");
    await fill({ sources: [publish("a.bin")] });
    const record = join(folder, ".fetch", "contents.json");
    const files = [`../victim-of-${process.pid}.bin`, victim, ".fetch/lock"];
    await writeFile(record, JSON.stringify({ files, presets: [".."] }));
    await fill({ sources: [publish("a.bin")] });
    expect(existsSync(victim)).toBe(true);
    await rm(victim);
  });
});

/** A preset whose files the tests do not fetch. */
const presetId = "piper-en_US-ljspeech-high";

/** Writes a file into the cache, as the user or an earlier process. */
async function write(path: string, text = "data"): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), text);
}

/** Writes the record of an earlier fill with the preset. */
const recordPreset = (name = "contents.json") =>
  write(`.fetch/${name}`, JSON.stringify({ files: [], presets: [presetId] }));

describe("a cache that cannot use its earlier files", () => {
  it.each(["", "{", "null", '{"files": null, "presets": []}', '{"files": [1], "presets": []}'])(
    "is filled although its record is damaged: %s",
    async (record) => {
      for (const name of ["contents-one.json", "contents-two.json"]) await write(`.fetch/${name}`, record);
      const [a, b] = [publish("a.bin"), publish("b.bin")];
      expect((await fill({ owner: "one", sources: [a, b] })).filled).toMatchObject({ files: 2 });
      expect(warnings).toEqual(["contents-one.json", "contents-two.json"]);
      expect((await fill({ owner: "one", sources: [a] })).filled).toMatchObject({ removed: 1 });
    },
  );

  it.each([
    ["a file becomes a folder", "voice", "voice/model.onnx"],
    ["a folder becomes a file", "voice/model.onnx", "voice"],
  ])("is filled when %s", async (_, before, after) => {
    await fill({ sources: [{ ...publish("a.bin"), path: before }] });
    const source = publish("b.bin");
    expect((await fill({ sources: [{ ...source, path: after }] })).filled).toMatchObject({ fetched: 1 });
    expect(digestOf(await readFile(join(folder, after)))).toBe(source.sha256);
  });
});

describe("a cache with files of the user", () => {
  it("keeps a file of the user at the path of a source that was never fetched", async () => {
    await write("luna/luna.onnx");
    const missing = { url: `${server.url}/missing`, sha256: "0".repeat(64), path: "luna/luna.onnx" };
    await expect(fill({ sources: [missing] })).rejects.toThrow(/404/);
    expect((await fill({ sources: [publish("a.bin")] })).filled).toMatchObject({ removed: 0 });
    expect(has("luna/luna.onnx")).toBe(true);
  });

  it("keeps a preset that the user installed, and removes a preset that it installed", async () => {
    await write(`${presetId}/installed.json`, "{}");
    await recordPreset();
    await claimPreset(folder, presetId);
    expect((await fill({ sources: [publish("a.bin")] })).filled).toMatchObject({ removed: 0 });
    expect(has(`${presetId}/installed.json`)).toBe(true);

    await rm(join(folder, presetId), { recursive: true });
    await claimPreset(folder, presetId);
    await write(`${presetId}/installed.json`, "{}");
    await recordPreset();
    expect((await fill({ sources: [publish("a.bin")] })).filled).toMatchObject({ removed: 1 });
    expect(has(presetId)).toBe(false);
  });

  it("does not install a preset over a folder of the user", async () => {
    await write(`${presetId}/mine.bin`);
    await expect(fill({ preset: presetId })).rejects.toThrow(/exists and was not installed by this cache/);
    expect(has(`${presetId}/mine.bin`)).toBe(true);
  });
});

describe("a cache that changes between a preset and sources in the same folder", () => {
  /** Writes the files of an installed preset. */
  const install = async () => {
    for (const name of ["installed.json", "model.onnx", "voices/nora.bin"])
      await write(`${presetId}/${name}`, "{}");
  };
  const source = () => ({ ...publish("model.onnx"), path: `${presetId}/model.onnx` });

  it("keeps the files of the sources when it removes the preset", async () => {
    await claimPreset(folder, presetId);
    await install();
    await recordPreset();
    const { sha256, ...rest } = source();
    expect((await fill({ sources: [{ ...rest, sha256 }] })).filled).toMatchObject({ removed: 1 });
    expect(digestOf(await readFile(join(folder, presetId, "model.onnx")))).toBe(sha256);
    expect(await readdir(join(folder, presetId))).toEqual(["model.onnx"]);
  });

  it("keeps the files of the preset when it removes the sources", async () => {
    await fill({ sources: [source()] });
    await claimPreset(folder, presetId);
    await install();
    const files = [`${presetId}/model.onnx`];
    await removeSurplus(folder, { files, presets: [presetId] }, { files: [], presets: [presetId] });
    expect(has(`${presetId}/model.onnx`)).toBe(true);
    expect(has(`.fetch/${presetId}/model.onnx.json`)).toBe(false);
  });

  it("is not filled from a preset and a source in its folder", async () => {
    await expect(fill({ preset: presetId, sources: [source()] })).rejects.toThrow(
      /is in the folder of the preset piper-en_US-ljspeech-high; set another path/,
    );
  });
});

describe("two caches on one volume", () => {
  it("keep the files of each other", async () => {
    const [a, b, c] = [publish("a.bin"), publish("b.bin"), publish("c.bin")];
    await fill({ owner: "one", sources: [a, b] });
    expect((await fill({ owner: "two", sources: [b, c] })).filled).toMatchObject({ fetched: 1, removed: 0 });
    expect((await fill({ owner: "one", sources: [a] })).filled).toMatchObject({ removed: 0 });
    expect(["a.bin", "b.bin", "c.bin"].map(has)).toEqual([true, true, true]);
    expect((await fill({ owner: "two", sources: [c] })).filled).toMatchObject({ removed: 1 });
    expect(["a.bin", "b.bin", "c.bin"].map(has)).toEqual([true, false, true]);
  });

  it("keep a preset that one of them names", async () => {
    await claimPreset(folder, presetId);
    await write(`${presetId}/installed.json`, "{}");
    await recordPreset("contents-one.json");
    await recordPreset("contents-two.json");
    const sources = [publish("a.bin")];
    expect((await fill({ owner: "one", sources })).filled).toMatchObject({ removed: 0 });
    expect((await fill({ owner: "two", sources })).filled).toMatchObject({ removed: 1 });
    expect(has(presetId)).toBe(false);
  });
});

describe("svc-tts cache fill", () => {
  const words = (plan: CachePlan, ...more: string[]) => [
    ...["cache", "fill", "--plan", JSON.stringify(plan), "--into", folder],
    ...["--result", join(folder, "result"), ...more],
  ];
  const result = async () => readCacheResult(await readFile(join(folder, "result"), "utf8"));
  const inProcess = (plan: CachePlan) =>
    runInProcess([cacheCommand], words(plan), { env: { SVC_TTS_LOG_LEVEL: "silent" } });

  function start(plan: CachePlan, ...more: string[]): ChildProcess {
    const env = { ...process.env, SVC_TTS_HOST: "127.0.0.1" };
    return spawn(process.execPath, [main, ...words(plan, ...more)], { env, stdio: "ignore" });
  }

  it("writes its result for the operator", async () => {
    expect((await inProcess({ sources: [publish("a.bin")] })).code).toBe(0);
    expect(await result()).toEqual({ outcome: "filled", files: 1, bytes: 10_000, fetched: 1, removed: 0 });
  });

  it.each<[string, () => CachePlan, RegExp]>([
    [
      "FetchFailed",
      () => ({
        sources: [
          { ...publish("a.bin"), path: "voice" },
          { ...publish("b.bin"), path: "voice/model.onnx" },
        ],
      }),
      /a file in place of a folder.*change path/,
    ],
    [
      "FetchFailed",
      () => ({
        sources: [
          { ...publish("a.bin"), path: "voice/model.onnx" },
          { ...publish("b.bin"), path: "voice" },
        ],
      }),
      /a folder in place of a file.*change path/,
    ],
    [
      "DigestMismatch",
      () => ({ sources: [{ ...publish("a.bin"), sha256: "0".repeat(64) }] }),
      /expected 0000/,
    ],
    ["PresetUnknown", () => ({ preset: "no-such-model" }), /no-such-model does not exist.*kokoro-82m/],
    ["FetchFailed", () => ({ sources: [{ url: `${server.url}/missing`, sha256: "0".repeat(64) }] }), /404/],
  ])("writes the reason %s", async (reason, plan, message) => {
    expect((await inProcess(plan())).code).toBe(1);
    expect(await result()).toEqual({ outcome: "failed", reason, message: expect.stringMatching(message) });
  });

  it("writes the reason DiskFull if the volume accepts no more bytes", async () => {
    const source = publish("a.bin", randomBytes(300_000));
    // A limit of the file size causes a short write, like a full disk.
    const command = [process.execPath, main, ...words({ sources: [source] })];
    const limited = spawn("bash", ["-c", `ulimit -f 100; exec "$@"`, "bash", ...command], {
      stdio: "ignore",
    });
    const [code] = await once(limited, "exit");
    expect(code).toBe(1);
    expect(await result()).toMatchObject({
      reason: "DiskFull",
      message: expect.stringContaining("increase the size"),
    });
    expect(has("a.bin")).toBe(false);
  });

  it("serves its progress, resumes after its process was killed, and reports that it was stopped", async () => {
    const bytes = randomBytes(300_000);
    const plan = { sources: [publish("a.bin"), publish("model.bin", bytes)] };
    const partial = join(folder, ".fetch", "model.bin.partial");
    const received = async (atLeast: number) =>
      ((await stat(partial).catch(() => undefined))?.size ?? 0) >= atLeast;
    const untilHeld = (atLeast: number) => eventually("the first part of the file", () => received(atLeast));
    /** Sends a part of the file, and keeps the connection open. */
    server.rule = ({ url, headers }, response) => {
      if (url !== "/model.bin") return false;
      const from = Number(/\d+/.exec(headers.range ?? "0")?.[0]);
      const { length } = bytes;
      response.writeHead(from > 0 ? 206 : 200, {
        etag: '"one"',
        "content-length": length - from,
        ...(from > 0 && { "content-range": `bytes ${from}-${length - 1}/${length}` }),
      });
      response.write(bytes.subarray(from, from + 100_000));
      return true;
    };

    const port = String(await leasePort());
    const killed = start(plan, "--port", port);
    await untilHeld(100_000);
    const metadata = { name: "fetch", namespace: "ns" };
    const pod = { apiVersion: "v1", kind: "Pod", metadata, status: { podIP: "127.0.0.1" } };
    expect(await readFetchProgress(pod, Number(port))).toEqual({
      files: 1,
      totalFiles: 2,
      bytes: 110_000,
      totalBytes: 310_000,
      bytesPerSecond: expect.any(Number),
    });
    killed.kill("SIGKILL");
    await once(killed, "exit");
    expect(existsSync(join(folder, "result"))).toBe(false);
    // A process that was killed does not remove its lock, and the next process waits until the lock is stale.
    await rm(join(folder, ".fetch", "lock"));

    const stopped = start(plan);
    await untilHeld(200_000);
    stopped.kill("SIGTERM");
    expect(await once(stopped, "exit")).toEqual([1, null]);
    expect(await result()).toMatchObject({ outcome: "failed", reason: "FetchInterrupted" });

    server.rule = () => false;
    server.validator = "none";
    expect((await inProcess(plan)).code).toBe(0);
    expect(await result()).toMatchObject({ outcome: "filled", files: 2, bytes: 310_000, fetched: 1 });
    expect(server.requests.at(-1)?.range).toBe("bytes=200000-");
    expect(await readFile(join(folder, "model.bin"))).toEqual(bytes);
  });
});

it("a voice that is added to a cache is heard from a running replica, and a removed voice is not", async () => {
  const voices = new VoicesFolder();
  const publishVoice = async (name: string) => {
    voices.piper(name);
    const files = [`${name}.onnx`, `${name}.onnx.json`];
    return Promise.all(files.map(async (file) => publish(file, await readFile(join(voices.path, file)))));
  };
  const [first, second] = [await publishVoice("en_GB-nora-low"), await publishVoice("en_GB-vera-low")];
  await fill({ sources: first });
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  const tier = await modelTier({ tokens, voices: { folder, providers: ["cpu"], processes: 1 } });
  const route = [{ service: tier.url, pool: "mist", weight: 100, idle: false }];
  const api = await startTestApi({ mist: route, mistv2: route });
  const status = async (speaker: string) =>
    (await api.post({ speaker, modelId: "mist", text: "Hello there." }, { accept: "audio/pcm" })).status;
  try {
    await eventually("speech of the first voice", async () => (await status("en_gb-nora-low")) === 200);
    expect(await status("en_gb-vera-low")).toBe(400);
    await fill({ sources: second });
    await eventually("speech of the added voice", async () => (await status("en_gb-vera-low")) === 200);
    await eventually(
      "the removed voice to be rejected",
      async () => (await status("en_gb-nora-low")) === 400,
    );
  } finally {
    await api.stop();
    await tier.stop();
    voices.delete();
  }
});
