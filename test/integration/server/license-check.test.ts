import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import { startApiTier } from "../../../server/api/start.ts";
import { testVoices } from "../../support/api-tier.ts";
import { type Certificate, selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/eventually.ts";
import { type Issuer, licenseIssuer } from "../../support/licenses.ts";

/** The API tier and a real HTTPS server in the place of the license's issuer. */

let certificate: Certificate;
let issuer: Issuer;
let server: Server;
let folder = "";
let endpoint = "";
let asked: string[] = [];
let answer: (response: ServerResponse) => void | Promise<void>;
const apiKey = "key-of-a-test";
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  certificate = await selfSigned();
  issuer = await licenseIssuer();
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-issuer-"));
  asked = [];
  answer = async (response) => void response.end(await issuer.answer());
  server = createServer(certificate, async (request: IncomingMessage, response) => {
    let body = "";
    for await (const piece of request) body += String(piece);
    asked.push(`${request.method} ${request.url} ${body}`);
    await answer(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}/status`;
});

afterEach(async () => {
  for (const api of running.splice(0)) await api.stop();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

afterAll(() => expect(running).toEqual([]));

const file = (name: string) => join(folder, name);

function route(licenseCheck?: RoutingTable["licenseCheck"]): void {
  const mist = [{ pool: "mist", service: "http://127.0.0.1:9", weight: 100, idle: true }];
  const table: RoutingTable = {
    version: 1,
    profile: "self-hosted",
    models: { mist },
    ...(licenseCheck && { licenseCheck }),
  };
  writeFileSync(file("routing.json"), JSON.stringify(table));
}

interface Options {
  readonly intervalSeconds?: number;
  readonly graceSeconds?: number;
  readonly kept?: RoutingTable["licenseCheck"];
  readonly authority?: Buffer;
  readonly isAsked?: boolean;
  readonly withinMs?: number;
}

/** An API tier of its own; interval and grace of a second or so. */
async function start(options: Options = {}): Promise<string> {
  const {
    intervalSeconds = 1,
    graceSeconds = 0,
    kept,
    authority = certificate.cert,
    isAsked = true,
    withinMs = 3_000,
  } = options;
  route(kept);
  writeFileSync(file("license"), await issuer.issue());
  writeFileSync(file("jwks.json"), JSON.stringify(issuer.keys));
  writeFileSync(file("token"), "internal-token");
  writeFileSync(file("ca.pem"), authority);
  const timing = { lookMs: 20, retryMs: 50, withinMs };
  const api = await startApiTier({
    host: "127.0.0.1",
    port: 0,
    routing: { kind: "file", path: file("routing.json") },
    tokenFile: file("token"),
    licenseFile: file("license"),
    licenseKeysFile: file("jwks.json"),
    licenseGraceSeconds: graceSeconds,
    licenseCheck: isAsked ? { endpoint, intervalSeconds, caFile: file("ca.pem"), timing } : undefined,
    keysFile: undefined,
    apiKey,
    database: undefined,
    keysStaleSeconds: 3600,
    keyLimits: {},
    valkey: undefined,
    drainSeconds: 1,
    logLevel: "silent",
    voices: testVoices,
    timing: { farewellMs: 0, licenseIntervalMs: 50 },
  });
  running.push(api);
  return api.url;
}

async function state(url: string): Promise<string> {
  return ((await (await fetch(`${url}/health`)).json()) as { licenseStatus: string }).licenseStatus;
}

const becomes = (url: string, wanted: string) =>
  eventually(`license ${wanted}`, async () => (await state(url)) === wanted);

async function figure(url: string, name: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text.split("\n").find((line) => line.startsWith(name));
}

const counted = (url: string, name: string) =>
  eventually(name, async () => / [1-9]\d*$/.test((await figure(url, name)) ?? ""));

const failedChecks = 'svc_tts_license_checks_total{result="failed"}';

describe("the license's issuer", () => {
  it("is asked by the license's id alone, again before its answer is too old, and counted", async () => {
    const url = await start({ intervalSeconds: 2 });
    await eventually("two questions", () => asked.length >= 2);
    expect(new Set(asked)).toEqual(new Set(['POST /status {"id":"1"}']));
    expect(await state(url)).toBe("valid");
    await counted(url, 'svc_tts_license_checks_total{result="good"}');
    expect(await figure(url, "svc_tts_license_check_timestamp_seconds")).toMatch(/ \d{10}/);
    const lines = await fetch(`${url}/load`, { headers: { authorization: "Bearer internal-token" } });
    const first = await lines.body?.getReader().read();
    expect(JSON.parse(new TextDecoder().decode(first?.value))).toMatchObject({
      licenseAnswer: expect.any(String),
    });
  });

  it("is never asked where nobody said so", async () => {
    const url = await start({ isAsked: false });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect([asked, await state(url)]).toEqual([[], "valid"]);
    expect(await figure(url, "svc_tts_license_checks_total")).toBeUndefined();
  });

  it("revokes: grace counts from there, then requests are refused with the reason; a later good word mends it", async () => {
    const url = await start({ intervalSeconds: 4, graceSeconds: 2 });
    await eventually("a question", () => asked.length > 0);
    answer = async (response) =>
      void response.end(await issuer.answer({ status: "revoked", reason: "unpaid" }));
    await becomes(url, "grace");
    await becomes(url, "invalid");
    const refused = await fetch(`${url}/v1/svc-tts`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ text: "Hello.", speaker: "abbie", modelId: "mist" }),
    });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("unpaid")]);
    answer = async (response) => void response.end(await issuer.answer());
    await becomes(url, "valid");
  });

  it("that cannot be reached changes nothing within the interval, then counts down the grace, then ends it", async () => {
    const url = await start({ intervalSeconds: 5, graceSeconds: 2 });
    await eventually("a question", () => asked.length > 0);
    await becomes(url, "valid");
    server.closeAllConnections();
    server.close();
    expect(await state(url)).toBe("valid");
    await becomes(url, "grace");
    await becomes(url, "invalid");
    expect(await figure(url, failedChecks)).toMatch(/ [1-9]/);
  });

  it("that could not be reached for long is no trouble to a pod that starts anew, by what the operator keeps", async () => {
    server.close();
    const now = Math.floor(Date.now() / 1000);
    const kept = await issuer.answer({ iat: now - 5 });
    const url = await start({ intervalSeconds: 3600, kept: { answer: kept } });
    expect([asked, await state(url)]).toEqual([[], "valid"]);
    route({ answer: await issuer.answer({ iat: now - 4, status: "revoked" }) });
    await becomes(url, "invalid");
  });

  it("has no longer to answer for the first time than it is awaited, whichever pod awaits it", async () => {
    server.close();
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const url = await start({ intervalSeconds: 60, graceSeconds: 2, kept: { since } });
    expect(await state(url)).toBe("invalid");
  });

  it.each<[string, (response: ServerResponse) => void | Promise<void>, number?]>([
    ["is malformed", (response) => void response.end("<html>we are fine</html>")],
    ["comes too slowly", (response) => void response.write("e"), 1_000],
    ["never comes", () => undefined, 1_000],
    ["is huge", (response) => void response.end("x".repeat(1_000_000))],
    ["never ends", (response) => void setInterval(() => response.write("x".repeat(9_000)), 20).unref()],
    [
      "is signed by somebody else",
      async (response) => void response.end(await (await licenseIssuer()).answer()),
    ],
    ["is about another license", async (response) => void response.end(await issuer.answer({ jti: "2" }))],
    ["is an error", (response) => void response.writeHead(500).end("no")],
    ["sends elsewhere", (response) => void response.writeHead(302, { location: "/other" }).end()],
    ["breaks off", (response) => void response.socket?.destroy()],
  ])("whose answer %s is as one that cannot be reached", async (_what, how, withinMs = 3_000) => {
    answer = how;
    const url = await start({
      intervalSeconds: 60,
      graceSeconds: 3600,
      withinMs,
      kept: { since: new Date(0).toISOString() },
    });
    await counted(url, failedChecks);
    expect(await state(url)).toBe("invalid");
    expect(new Set(asked)).toEqual(new Set(['POST /status {"id":"1"}']));
    answer = async (response) => void response.end(await issuer.answer());
    await becomes(url, "valid");
  });

  it("with a certificate that nobody vouches for is not believed", async () => {
    const url = await start({ authority: (await selfSigned()).cert });
    await counted(url, failedChecks);
    expect(asked).toEqual([]);
  });
});
