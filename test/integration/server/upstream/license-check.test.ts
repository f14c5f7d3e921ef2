import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { RoutingTable } from "../../../../config/contract/routing.ts";
import { type Certificate, selfSigned } from "../../../support/certificate.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { sendEvery } from "../../../support/peers.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type Issuer, licenseIssuer } from "../../../support/server/licenses.ts";

/** Tests the online check of an API tier with a fake clock and a real HTTPS server in place of the issuer. */

const folder = folderOfTests("issuer");
let certificate: Certificate;
let issuer: Issuer;
let server: Server;
let endpoint = "";
let requests: string[] = [];
let answer: (response: ServerResponse) => void | Promise<void>;
let clock: FakeClock;
let api: TestApi | undefined;

const intervalSeconds = 600;
/**
 * A constant in place of random numbers, so that the times of checks are known: after 85 % of the interval,
 * and 22.5 s after a first failure.
 */
const random = () => 0.5;
const nextCheckMs = 0.85 * intervalSeconds * 1000;
const retryMs = 22_500;
const answerWithinMs = 10_000;
/** The server tests once a second whether an online check is due. */
const tickMs = 1_000;

beforeAll(async () => {
  certificate = await selfSigned();
  issuer = await licenseIssuer();
});

beforeEach(async () => {
  requests = [];
  clock = new FakeClock(Date.now()); // The issuer signs with the time of the machine.
  answer = sayGood;
  server = createServer(certificate, async (request: IncomingMessage, response) => {
    let body = "";
    for await (const piece of request) body += String(piece);
    requests.push(`${request.method} ${request.url} ${body}`);
    await answer(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}/status`;
});

afterEach(async () => {
  await api?.stop();
  api = undefined;
  server.closeAllConnections();
  server.close();
});

const seconds = () => Math.floor(clock.nowMs() / 1000);
const sayGood = async (response: ServerResponse) =>
  void response.end(await issuer.answer({ iat: seconds() }));

const file = (name: string) => join(folder, name);

const mist = [{ pool: "mist", service: "http://127.0.0.1:9", weight: 100, idle: true }];

interface Options {
  readonly graceSeconds?: number;
  readonly kept?: RoutingTable["licenseCheck"];
  readonly authority?: Buffer;
  readonly isConfigured?: boolean;
}

async function start({
  graceSeconds = 0,
  kept,
  authority = certificate.cert,
  isConfigured = true,
}: Options = {}): Promise<string> {
  writeFileSync(file("license"), await issuer.issue({ exp: seconds() + 100 * 3600 }));
  writeFileSync(file("jwks.json"), JSON.stringify(issuer.keys));
  writeFileSync(file("ca.pem"), authority);
  writeFileSync(file("routing.json"), tableWith(kept));
  api = await startTestApi(
    {},
    {
      routing: { kind: "file", path: file("routing.json") },
      licenseFile: file("license"),
      licenseKeysFile: file("jwks.json"),
      licenseGraceSeconds: graceSeconds,
      licenseCheck: isConfigured ? { endpoint, intervalSeconds, caFile: file("ca.pem") } : undefined,
    },
    { clock, random },
  );
  return api.url;
}

function tableWith(licenseCheck: RoutingTable["licenseCheck"]): string {
  const table: RoutingTable = {
    version: 1,
    profile: "self-hosted",
    models: { mist },
    ...(licenseCheck && { licenseCheck }),
  };
  return JSON.stringify(table);
}

/** Starts the API tier, and waits for the first response of the issuer. */
async function startConfirmed(options: Options = {}): Promise<string> {
  const url = await start(options);
  await clock.advance(tickMs);
  await counted(url, goodChecks);
  return url;
}

async function state(url: string): Promise<string> {
  return ((await (await fetch(`${url}/health`)).json()) as { licenseStatus: string }).licenseStatus;
}

const becomes = (url: string, expected: string) =>
  eventually(`license status ${expected}`, async () => {
    await clock.advance(tickMs);
    return (await state(url)) === expected;
  });

async function figure(url: string, name: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text.split("\n").find((line) => line.startsWith(name));
}

const counted = (url: string, name: string) =>
  eventually(name, async () => / [1-9]\d*$/.test((await figure(url, name)) ?? ""));

const failedChecks = 'svc_tts_license_checks_total{result="failed"}';
const goodChecks = 'svc_tts_license_checks_total{result="good"}';

describe("the online license check", () => {
  it("sends only the id of the license, is repeated before the response expires, and is counted", async () => {
    const url = await startConfirmed();
    await clock.advance(nextCheckMs - tickMs);
    expect(requests).toHaveLength(1);
    await clock.advance(2 * tickMs);
    await eventually("a second check", () => requests.length === 2);
    expect(new Set(requests)).toEqual(new Set(['POST /status {"id":"1"}']));
    expect(await state(url)).toBe("valid");
    await eventually("two checks in the metrics", async () =>
      / 2$/.test((await figure(url, goodChecks)) ?? ""),
    );
    expect(await figure(url, "svc_tts_license_check_timestamp_seconds")).toMatch(/ \d{10}/);
    const lines = await fetch(`${url}/load`, { headers: { authorization: "Bearer internal-token" } });
    const reader = lines.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    expect(JSON.parse(new TextDecoder().decode(first?.value))).toMatchObject({
      licenseAnswer: expect.any(String),
    });
  });

  it("is not sent without an endpoint", async () => {
    const url = await start({ isConfigured: false });
    await clock.advance(2 * intervalSeconds * 1000);
    expect([requests, await state(url)]).toEqual([[], "valid"]);
    expect(await figure(url, "svc_tts_license_checks_total")).toBeUndefined();
  });

  it("starts the grace period after a revocation, rejects requests after the grace period, and accepts requests after a valid response", async () => {
    const url = await startConfirmed({ graceSeconds: 120 });
    answer = async (response) =>
      void response.end(await issuer.answer({ iat: seconds(), status: "revoked", reason: "unpaid" }));
    await clock.advance(nextCheckMs + tickMs);
    await eventually("a second check", () => requests.length === 2);
    await becomes(url, "grace");
    await clock.advance(60_000);
    expect(await state(url)).toBe("grace");
    await clock.advance(60_000);
    await becomes(url, "invalid");
    const rejected = await api?.post({ text: "Hello.", speaker: "abbie", modelId: "mist" });
    expect([rejected?.status, await rejected?.text()]).toEqual([403, expect.stringContaining("unpaid")]);
    answer = sayGood;
    await clock.advance(nextCheckMs);
    await becomes(url, "valid");
  });

  it("with an unreachable issuer, keeps the license valid for the interval, then starts the grace period, then rejects requests", async () => {
    const url = await startConfirmed({ graceSeconds: 120 });
    expect(await state(url)).toBe("valid");
    server.closeAllConnections();
    server.close();
    await clock.advance(nextCheckMs + tickMs);
    await counted(url, failedChecks);
    await clock.advance(60_000); // Now 571 s of the interval of 600 s have passed.
    expect(await state(url)).toBe("valid");
    await clock.advance(60_000);
    await becomes(url, "grace");
    await clock.advance(120_000);
    await becomes(url, "invalid");
  });

  it("uses the stored response of the routing table in a new pod while the issuer is unreachable", async () => {
    server.close();
    const kept = await issuer.answer({ iat: seconds() - 5 });
    const url = await start({ kept: { answer: kept } });
    expect([requests, await state(url)]).toEqual([[], "valid"]);
    const revoked = await issuer.answer({ iat: seconds() - 4, status: "revoked" });
    writeFileSync(file("routing.json"), tableWith({ answer: revoked }));
    await becomes(url, "invalid");
  });

  it("starts the wait for the first response at the time in the routing table, and not at the start of the pod", async () => {
    server.close();
    const since = new Date(clock.nowMs() - 3_600_000).toISOString();
    const url = await start({ graceSeconds: 120, kept: { since } });
    expect(await state(url)).toBe("invalid");
  });

  it.each<[string, (response: ServerResponse) => void | Promise<void>, number?]>([
    ["is malformed", (response) => void response.end("<html>we are fine</html>")],
    ["is incomplete after the time limit", (response) => void response.write("e"), answerWithinMs],
    ["does not arrive", () => undefined, answerWithinMs],
    ["is too large", (response) => void response.end("x".repeat(1_000_000))],
    ["never ends", (response) => void sendEvery(20, () => response.write("x".repeat(9_000)))],
    [
      "is signed by another key",
      async (response) => void response.end(await (await licenseIssuer()).answer({ iat: seconds() })),
    ],
    [
      "is about another license",
      async (response) => void response.end(await issuer.answer({ iat: seconds(), jti: "2" })),
    ],
    ["has an error status", (response) => void response.writeHead(500).end("no")],
    ["is a redirect", (response) => void response.writeHead(302, { location: "/other" }).end()],
    ["is interrupted", (response) => void response.socket?.destroy()],
  ])("treats a response that %s like an unreachable issuer", async (_what, respond, failsAfterMs = 0) => {
    answer = respond;
    const url = await start({ graceSeconds: 3600, kept: { since: new Date(0).toISOString() } });
    await clock.advance(tickMs);
    await eventually("the first check", () => requests.length === 1);
    await clock.advance(failsAfterMs);
    await counted(url, failedChecks);
    expect(await state(url)).toBe("invalid");
    expect(requests).toEqual(['POST /status {"id":"1"}']);
    answer = sayGood;
    await clock.advance(retryMs);
    await becomes(url, "valid");
  });

  it("rejects a certificate of an unknown certificate authority", async () => {
    const url = await start({ authority: (await selfSigned()).cert });
    await clock.advance(tickMs);
    await counted(url, failedChecks);
    expect(requests).toEqual([]);
  });
});
