import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { paths } from "../../../../config/contract/names.ts";
import { fetchers } from "../../../../operator/desired/pods/model-cache.ts";
import { refuseDowngrade } from "../../../../server/fetch/answers.ts";
import { type FetchOptions, fetchModel } from "../../../../server/fetch/fetch.ts";
import { mayHavePassword } from "../../../../server/fetch/plan.ts";
import { eventually, eventuallyPasses } from "../../../support/eventually.ts";
import { FileServer } from "../../../support/server/file-server.ts";

let server: FileServer;
let folder: string;
let lines: string[];

beforeEach(async () => {
  server = await FileServer.start();
  folder = await mkdtemp(join(tmpdir(), "svc-tts-fetch-"));
  lines = [];
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const main = join(import.meta.dirname, "../../../../server/main.ts");
const weights = randomBytes(300_000);
const digestOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const line = (fields: object, message: string) => {
  lines.push(`${message} ${JSON.stringify(fields)}`);
};

function run(source: string, more: Partial<FetchOptions> = {}) {
  return fetchModel({
    source,
    folder,
    path: undefined,
    sha256: undefined,
    endpoint: undefined,
    credentials: {},
    now: () => Date.parse("2026-01-01T00:00:00Z"),
    log: { info: line, warn: line },
    signal: new AbortController().signal,
    pauseMs: 1,
    lockBeatMs: 40,
    lockStaleMs: 600_000,
    ...more,
  });
}

/** Returns the digest of a fetched file: the message about two different digests is short. */
const fetched = async (name = "model.bin") => digestOf(await readFile(join(folder, name)));
const partial = (name = "model.bin") => join(folder, ".fetch", `${name}.partial`);

describe("a file over HTTP", () => {
  beforeEach(() => {
    server.files.set("/model.bin", weights);
    server.beforeCut = async (sentBytes) => {
      await eventually("all sent bytes to be on the disk", async () => {
        return sentBytes === 0 || (await stat(partial())).size === sentBytes;
      });
    };
  });

  /** Starts a download, and aborts it after its connection was interrupted. */
  async function dieInTheMiddle(): Promise<void> {
    server.cuts.push(100_000);
    const stopped = new AbortController();
    const dying = run(`${server.url}/model.bin`, { signal: stopped.signal, pauseMs: 60_000 });
    await eventuallyPasses(() => expect(lines.join()).toContain("the download was interrupted"));
    stopped.abort();
    await expect(dying).rejects.toThrow();
  }

  it("is fetched, verified, and not requested again", async () => {
    const sha256 = digestOf(weights);
    expect(await run(`${server.url}/model.bin?token=secret`, { sha256 })).toEqual({ files: 1, fetched: 1 });
    expect(await fetched()).toBe(digestOf(weights));
    expect(await run(`${server.url}/model.bin?token=secret`, { sha256 })).toEqual({ files: 1, fetched: 0 });
    expect(server.requests).toHaveLength(1);
    expect(lines.join()).not.toContain("secret");
  });

  it("is resumed after each interruption of the connection", async () => {
    server.cuts.push(100_000, 50_000, 0, 70_000);
    await run(`${server.url}/model.bin`, { sha256: digestOf(weights) });
    expect(await fetched()).toBe(digestOf(weights));
    const starts = server.requests.map(({ range }) => Number(/\d+/.exec(range ?? "0")?.[0]));
    expect(starts).toEqual([0, 100_000, 150_000, 150_000, 220_000]);
    expect(lines.filter((line) => line.startsWith("the download was interrupted"))).toHaveLength(4);
  });

  it("is resumed by the next process after an aborted download", async () => {
    await dieInTheMiddle();
    expect(existsSync(join(folder, "model.bin"))).toBe(false);
    expect((await stat(partial())).size).toBeGreaterThan(0);
    await run(`${server.url}/model.bin`);
    expect(await fetched()).toBe(digestOf(weights));
    expect(server.requests.at(-1)?.range).toMatch(/^bytes=[1-9]/);
  });

  it.each<[string, bytes: number, () => unknown]>([
    ["ETag and If-Range", 200_000, () => undefined],
    ["neither ETag nor Last-Modified", weights.length, () => (server.validator = "none")],
    ["no If-Range", weights.length, () => (server.ifRange = false)],
  ])("is fetched again if it changed, from a server with %s", async (_what, bytes, change) => {
    change();
    const other = randomBytes(bytes);
    server.cuts.push(100_000);
    server.rule = () => {
      if (server.requests.length === 2) server.files.set("/model.bin", other);
      return false;
    };
    await run(`${server.url}/model.bin`);
    expect(await fetched()).toBe(digestOf(other));
  });

  it("is resumed without ETag and Last-Modified if the source has a digest", async () => {
    server.validator = "none";
    server.cuts.push(100_000);
    await run(`${server.url}/model.bin`, { sha256: digestOf(weights) });
    expect(server.requests.at(-1)?.range).toMatch(/^bytes=[1-9]/);
    expect(await fetched()).toBe(digestOf(weights));
  });

  it("causes an error if the disk is full, and is not treated as complete", async () => {
    // A limit of the file size causes a short write, like a full disk.
    const source = ["--source", `${server.url}/model.bin`, "--sha256", digestOf(weights)];
    const command = [process.execPath, main, "fetch", ...source, "--into", folder];
    const limited = promisify(execFile)("bash", ["-c", `ulimit -f 100; exec "$@"`, "bash", ...command]);
    await expect(limited).rejects.toMatchObject({
      stderr: expect.stringContaining("the cache is full after"),
    });
    expect(existsSync(join(folder, "model.bin"))).toBe(false);
  });

  it.each([
    ["does not support ranges", () => (server.ranges = false)],
    ["sends no Content-Length", () => (server.lengths = false)],
  ])("is fetched from its start after an interruption, from a server that %s", async (_what, change) => {
    change();
    server.cuts.push(100_000);
    await run(`${server.url}/model.bin`, { sha256: digestOf(weights) });
    expect(await fetched()).toBe(digestOf(weights));
  });

  it("is deleted with its partial file if the digest differs", async () => {
    const sha256 = "0".repeat(64);
    await expect(run(`${server.url}/model.bin`, { sha256 })).rejects.toThrow(
      `has the SHA-256 ${digestOf(weights)}; expected ${sha256}`,
    );
    expect(await readdir(folder)).toEqual([".fetch"]);
    expect(existsSync(partial())).toBe(false);
  });

  it("is fetched again if its partial file was damaged on the disk", async () => {
    await dieInTheMiddle();
    await writeFile(partial(), randomBytes((await stat(partial())).size));
    await expect(run(`${server.url}/model.bin`, { sha256: digestOf(weights) })).rejects.toThrow(/SHA-256/);
    await run(`${server.url}/model.bin`, { sha256: digestOf(weights) });
    expect(await fetched()).toBe(digestOf(weights));
  });

  it("causes an immediate error if it does not exist, and is requested again if the server is overloaded", async () => {
    await expect(run(`${server.url}/other.bin`)).rejects.toThrow(
      /returned HTTP status 404; the file does not exist/,
    );
    expect(server.requests).toHaveLength(1);
    let rejections = 3;
    server.rule = (_request, response) => {
      if (rejections-- <= 0) return false;
      response.writeHead(503).end();
      return true;
    };
    await run(`${server.url}/model.bin`);
    expect(await fetched()).toBe(digestOf(weights));
  });

  it("causes an error after a limited number of attempts if the server never responds", async () => {
    server.rule = (_request, response) => response.destroy() !== undefined;
    await expect(run(`${server.url}/model.bin`)).rejects.toThrow(/was interrupted/);
    expect(server.requests.length).toBeLessThan(20);
  });

  it("is resumed if the server stops sending", async () => {
    server.rule = (_request, response) => {
      if (server.requests.length > 1) return false;
      response.writeHead(200, { "content-length": weights.length }).write(weights.subarray(0, 1000));
      return true;
    };
    await run(`${server.url}/model.bin`, { idleTimeoutMs: 200, sha256: digestOf(weights) });
    expect(await fetched()).toBe(digestOf(weights));
  });

  it("is requested with the Authorization header of the Secret, which no other origin receives", async () => {
    await using other = await FileServer.start();
    other.files.set("/there.bin", weights);
    server.rule = (_request, response) => {
      response.writeHead(302, { location: `${other.url}/there.bin` }).end();
      return true;
    };
    await run(`${server.url}/model.bin`, { credentials: { FETCH_AUTHORIZATION: "Bearer s3cret" } });
    expect(server.requests[0]?.authorization).toBe("Bearer s3cret");
    // Another port of the same address is another origin.
    expect(other.requests[0]?.authorization).toBeUndefined();
    expect(await fetched()).toBe(digestOf(weights));
  });

  it("causes log lines with its progress", async () => {
    await run(`${server.url}/model.bin`, { progressEveryMs: 0 });
    const progress = /^the file is being fetched .*"percent":\d+,"bytesPerSecond":\d+/;
    expect(lines.some((line) => progress.test(line))).toBe(true);
  });

  it("is fetched once by two pods that share a cache, and by the second pod if the first pod died", async () => {
    server.cuts.push(100_000);
    await Promise.all([run(`${server.url}/model.bin`), run(`${server.url}/model.bin`)]);
    expect(server.requests).toHaveLength(2);
    expect(lines.join()).toContain("another pod is fetching");
    await rm(join(folder, "model.bin"));
    await mkdir(join(folder, ".fetch"), { recursive: true });
    await writeFile(join(folder, ".fetch", "lock"), "of a pod that died");
    await run(`${server.url}/model.bin`, { lockStaleMs: 300 });
    expect(await fetched()).toBe(digestOf(weights));
    expect(await readdir(join(folder, ".fetch"))).toEqual(["model.bin.json"]);
  });
});

describe("svc-tts fetch", () => {
  const command = (...words: string[]) =>
    promisify(execFile)(process.execPath, [main, "fetch", "--into", folder, ...words]);

  it("fetches a file, and logs its progress as lines of JSON", async () => {
    server.files.set("/model.bin", weights);
    const { stdout } = await command("--source", `${server.url}/model.bin`, "--sha256", digestOf(weights));
    expect(await fetched()).toBe(digestOf(weights));
    const last = stdout.trim().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toMatchObject({ files: 1, fetched: 1, message: "the cache is complete" });
  });

  it("accepts the arguments that the operator gives its init containers", async () => {
    server.files.set("/model.bin", weights);
    const source = { url: `${server.url}/model.bin`, path: "a/b.bin", sha256: digestOf(weights) };
    const initContainers = fetchers({ cache: { emptyDir: {}, sources: [source] } }, {});
    const args = initContainers[0]?.args?.map((arg) => (arg === paths.models ? folder : arg)) ?? [];
    await promisify(execFile)(process.execPath, [main, ...args]);
    expect(await fetched("a/b.bin")).toBe(digestOf(weights));
  });

  it("reports an error in one sentence", async () => {
    const failure = command("--source", `${server.url}/model.bin`);
    await expect(failure).rejects.toMatchObject({
      code: 1,
      stderr: `${server.url}/model.bin returned HTTP status 404; the file does not exist: check the source\n`,
    });
  });
});

describe("an object of S3", () => {
  it("is fetched from a compatible store, signed or unsigned", async () => {
    server.files.set("/bucket/a/my model.bin", weights);
    await run("s3://bucket/a/my model.bin", { endpoint: server.url });
    expect(server.requests[0]?.authorization).toBeUndefined();
    expect(await fetched("my model.bin")).toBe(digestOf(weights));
    const credentials = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "key", AWS_REGION: "eu-1" };
    await run("s3://bucket/a/my model.bin", { endpoint: server.url, credentials, path: "again.bin" });
    expect(server.requests[1]?.authorization).toMatch(/Credential=id\/20260101\/eu-1\/s3\/aws4_request,/);
    expect(await fetched("again.bin")).toBe(digestOf(weights));
  });

  it("is rejected with only one of the two credentials", async () => {
    const credentials = { AWS_ACCESS_KEY_ID: "id" };
    await expect(run("s3://bucket/a", { endpoint: server.url, credentials })).rejects.toThrow(
      /are required together/,
    );
  });
});

describe("plain HTTP to another machine", () => {
  const endpoint = "http://models.example:9000";
  it.each([
    ["http://models.example/model.bin?token=secret", {}],
    ["s3://bucket/model.bin", { endpoint }],
    ["hf://o/r", { endpoint }],
    ["oci://registry.example/tts/arcana:1", { endpoint }],
  ])("is rejected for %s without a digest, before any request", async (source, more) => {
    const fetching = run(source, more);
    await expect(fetching).rejects.toThrow(/^http:\/\/models\.example\S* is plain HTTP, .* add its sha256/);
  });

  it("is rejected after a redirect from HTTPS", () => {
    const redirectTo = (url: string) => () =>
      refuseDowngrade("https://models.example/a", { url } as Response);
    expect(redirectTo("http://other.example/a")).toThrow(
      "https://models.example/a redirects to plain HTTP, which does not protect the file; use a source without this redirect",
    );
    expect(redirectTo("https://other.example/a")).not.toThrow();
  });
});

describe("a repository of Hugging Face", () => {
  const commit = "c0ffee";
  const list = (siblings: object[]) => Buffer.from(JSON.stringify({ sha: commit, siblings }));

  it("is fetched completely, at one commit, with the digests of its listing", async () => {
    server.files.set(
      "/api/models/o/r/revision/main",
      list([
        { rfilename: ".gitattributes" },
        { rfilename: "config.json", size: 2 },
        { rfilename: "w/a.bin", size: weights.length, lfs: { sha256: digestOf(weights) } },
      ]),
    );
    server.files.set(`/o/r/resolve/${commit}/config.json`, Buffer.from("{}"));
    server.files.set(`/o/r/resolve/${commit}/w/a.bin`, weights);
    const more = { endpoint: server.url, path: "arcana", credentials: { HF_TOKEN: "hf_x" } };
    expect(await run("hf://o/r", more)).toEqual({ files: 2, fetched: 2 });
    expect(await fetched("arcana/w/a.bin")).toBe(digestOf(weights));
    for (const { authorization } of server.requests) expect(authorization).toBe("Bearer hf_x");
  });

  it("can be a single file, which is fetched from its resolve URL", async () => {
    server.files.set("/o/r/resolve/v2/w/a.bin", weights);
    await run("hf://o/r@v2/w/a.bin", { endpoint: server.url });
    expect(await fetched("a.bin")).toBe(digestOf(weights));
  });

  it.each(["../../etc/passwd", "/etc/passwd", "a/../../b", "a\\..\\b", ""])(
    "with the file name %s is rejected, because nothing may be written outside the cache",
    async (rfilename) => {
      server.files.set("/api/models/o/r/revision/main", list([{ rfilename }]));
      await expect(run("hf://o/r", { endpoint: server.url })).rejects.toThrow(/does not stay in the folder/);
    },
  );
});

describe("an artifact of an OCI registry", () => {
  const title = "org.opencontainers.image.title";
  const digest = `sha256:${digestOf(weights)}`;
  const manifest = (annotations: object, of = digest) =>
    Buffer.from(JSON.stringify({ layers: [{ digest: of, size: weights.length, annotations }] }));

  const runArcana = (more: Partial<FetchOptions> = {}, reference = ":1") =>
    run(`oci://registry.example/tts/arcana${reference}`, { endpoint: server.url, ...more });
  const credentials = { OCI_USERNAME: "me", OCI_PASSWORD: "pw" };

  beforeEach(() => {
    server.files.set("/v2/tts/arcana/manifests/1", manifest({ [title]: "arcana.bin" }));
    server.files.set(`/v2/tts/arcana/blobs/${digest}`, weights);
  });

  it("is fetched file by file, and each file is verified by its digest", async () => {
    await runArcana();
    expect(await fetched("arcana.bin")).toBe(digestOf(weights));
  });

  it("is fetched with a token that the registry grants for the password", async () => {
    server.rule = ({ url = "", headers }, response) => {
      if (url.startsWith("/token")) {
        const basic = Buffer.from("me:pw").toString("base64");
        const granted = headers.authorization === `Basic ${basic}` && url.includes("scope=pull");
        response.writeHead(granted ? 200 : 401).end(JSON.stringify({ token: "t0ken" }));
        return true;
      }
      if (headers.authorization === "Bearer t0ken") return false;
      const challenge = `Bearer realm="${server.url}/token",service="s",scope="pull"`;
      response.writeHead(401, { "www-authenticate": challenge }).end();
      return true;
    };
    await runArcana({ credentials });
    expect(await fetched("arcana.bin")).toBe(digestOf(weights));
  });

  const elsewhere = ["https://auth.other.example/token", "http://localhost:9/token"];
  it.each(elsewhere)("is rejected if its registry requests the password for %s", async (realm) => {
    server.rule = (_request, response) => {
      response.writeHead(401, { "www-authenticate": `Bearer realm="${realm}",service="s"` }).end();
      return true;
    };
    const message = /another site or plain HTTP, so the password was not sent/;
    await expect(runArcana({ credentials })).rejects.toThrow(message);
  });

  it.each([
    ["registry-1.docker.io", "https://auth.docker.io/token", true],
    ["registry.gitlab.com", "https://gitlab.com/jwt/auth", true],
    ["ghcr.io", "https://ghcr.io/token", true],
    ["ghcr.io", "http://ghcr.io/token", false],
    ["registry.example.co.uk", "https://auth.example.co.uk/token", true],
    ["registry.example.co.uk", "https://evil.co.uk/token", false],
    ["10.0.0.1", "https://10.0.0.2/token", false],
  ])("of %s has a password that may be sent to %s: %s", (registry, realm, sent) => {
    expect(mayHavePassword(new URL(realm), new URL(`https://${registry}/v2/`))).toBe(sent);
  });

  it.each([
    [
      "a layer that is not a file",
      { "io.deis.oras.content.unpack": "true", [title]: "x" },
      /not a single named file/,
    ],
    ["a layer without a name", {}, /not a single named file/],
  ])("is rejected if it has %s", async (_what, annotations, message) => {
    server.files.set("/v2/tts/arcana/manifests/1", manifest(annotations));
    await expect(runArcana()).rejects.toThrow(message);
  });

  it("is rejected if a blob or the manifest does not match its digest", async () => {
    server.files.set(`/v2/tts/arcana/blobs/${digest}`, randomBytes(weights.length));
    await expect(runArcana()).rejects.toThrow(/SHA-256/);
    const named = `sha256:${"0".repeat(64)}`;
    server.files.set(`/v2/tts/arcana/manifests/${named}`, manifest({ [title]: "arcana.bin" }));
    await expect(runArcana({}, `@${named}`)).rejects.toThrow(/does not match its digest/);
  });

  it("causes an error that names secretRef if the registry requires a password", async () => {
    server.rule = (_request, response) => response.writeHead(401).end() !== undefined;
    await expect(runArcana()).rejects.toThrow(
      /401; credentials are required: set secretRef to a Secret with them/,
    );
  });
});
