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

/** An API tier on the test's clock, and a real HTTPS server as the license's issuer. */

const folder = folderOfTests("issuer");
let certificate: Certificate;
let issuer: Issuer;
let server: Server;
let endpoint = "";
let asked: string[] = [];
let answer: (response: ServerResponse) => void | Promise<void>;
let clock: FakeClock;
let api: TestApi | undefined;

const intervalSeconds = 600;
/**
 * A constant random number, so that the times of checks are known: after 0.85 of the interval, and 22.5 s
 * after a first failure.
 */
const random = () => 0.5;
const nextQuestionMs = 0.85 * intervalSeconds * 1000;
const retryMs = 22_500;
const answerWithinMs = 10_000;
/** The server checks once a second whether an online check is due. */
const lookMs = 1_000;

beforeAll(async () => {
  certificate = await selfSigned();
  issuer = await licenseIssuer();
});

beforeEach(async () => {
  asked = [];
  clock = new FakeClock(Date.now()); // the issuer uses the clock of the machine for signatures
  answer = sayGood;
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
  readonly isAsked?: boolean;
}

async function start({
  graceSeconds = 0,
  kept,
  authority = certificate.cert,
  isAsked = true,
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
      licenseCheck: isAsked ? { endpoint, intervalSeconds, caFile: file("ca.pem") } : undefined,
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

/** Starts, and waits for the first response of the issuer. */
async function startConfirmed(options: Options = {}): Promise<string> {
  const url = await start(options);
  await clock.advance(lookMs);
  await counted(url, goodChecks);
  return url;
}

async function state(url: string): Promise<string> {
  return ((await (await fetch(`${url}/health`)).json()) as { licenseStatus: string }).licenseStatus;
}

const becomes = (url: string, wanted: string) =>
  eventually(`license ${wanted}`, async () => {
    await clock.advance(lookMs);
    return (await state(url)) === wanted;
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
  it("sends the license's id alone, repeats before the response expires, and is counted", async () => {
    const url = await startConfirmed();
    await clock.advance(nextQuestionMs - lookMs);
    expect(asked).toHaveLength(1);
    await clock.advance(2 * lookMs);
    await eventually("a second question", () => asked.length === 2);
    expect(new Set(asked)).toEqual(new Set(['POST /status {"id":"1"}']));
    expect(await state(url)).toBe("valid");
    await eventually("it is counted", async () => / 2$/.test((await figure(url, goodChecks)) ?? ""));
    expect(await figure(url, "svc_tts_license_check_timestamp_seconds")).toMatch(/ \d{10}/);
    const lines = await fetch(`${url}/load`, { headers: { authorization: "Bearer internal-token" } });
    const reader = lines.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    expect(JSON.parse(new TextDecoder().decode(first?.value))).toMatchObject({
      licenseAnswer: expect.any(String),
    });
  });

  it("is not sent unless it is configured", async () => {
    const url = await start({ isAsked: false });
    await clock.advance(2 * intervalSeconds * 1000);
    expect([asked, await state(url)]).toEqual([[], "valid"]);
    expect(await figure(url, "svc_tts_license_checks_total")).toBeUndefined();
  });

  it("starts the grace period on revocation, refuses requests after it, and accepts them after a valid response", async () => {
    const url = await startConfirmed({ graceSeconds: 120 });
    answer = async (response) =>
      void response.end(await issuer.answer({ iat: seconds(), status: "revoked", reason: "unpaid" }));
    await clock.advance(nextQuestionMs + lookMs);
    await eventually("a second question", () => asked.length === 2);
    await becomes(url, "grace");
    await clock.advance(60_000);
    expect(await state(url)).toBe("grace");
    await clock.advance(60_000);
    await becomes(url, "invalid");
    const refused = await api?.post({ text: "Hello.", speaker: "abbie", modelId: "mist" });
    expect([refused?.status, await refused?.text()]).toEqual([403, expect.stringContaining("unpaid")]);
    answer = sayGood;
    await clock.advance(nextQuestionMs);
    await becomes(url, "valid");
  });

  it("changes nothing within the interval when the issuer is unreachable, then counts down the grace period, then refuses", async () => {
    const url = await startConfirmed({ graceSeconds: 120 });
    expect(await state(url)).toBe("valid");
    server.closeAllConnections();
    server.close();
    await clock.advance(nextQuestionMs + lookMs);
    await counted(url, failedChecks);
    await clock.advance(60_000); // 571 s of 600 s have passed
    expect(await state(url)).toBe("valid");
    await clock.advance(60_000);
    await becomes(url, "grace");
    await clock.advance(120_000);
    await becomes(url, "invalid");
  });

  it("uses the operator's stored result in a new pod while the issuer is unreachable", async () => {
    server.close();
    const kept = await issuer.answer({ iat: seconds() - 5 });
    const url = await start({ kept: { answer: kept } });
    expect([asked, await state(url)]).toEqual([[], "valid"]);
    const revoked = await issuer.answer({ iat: seconds() - 4, status: "revoked" });
    writeFileSync(file("routing.json"), tableWith({ answer: revoked }));
    await becomes(url, "invalid");
  });

  it("counts the wait for the first response from the time that the operator stored, not from the start of the pod", async () => {
    server.close();
    const since = new Date(clock.nowMs() - 3_600_000).toISOString();
    const url = await start({ graceSeconds: 120, kept: { since } });
    expect(await state(url)).toBe("invalid");
  });

  it.each<[string, (response: ServerResponse) => void | Promise<void>, number?]>([
    ["is malformed", (response) => void response.end("<html>we are fine</html>")],
    ["comes too slowly", (response) => void response.write("e"), answerWithinMs],
    ["never comes", () => undefined, answerWithinMs],
    ["is huge", (response) => void response.end("x".repeat(1_000_000))],
    ["never ends", (response) => void sendEvery(20, () => response.write("x".repeat(9_000)))],
    [
      "is signed by another key",
      async (response) => void response.end(await (await licenseIssuer()).answer({ iat: seconds() })),
    ],
    [
      "is about another license",
      async (response) => void response.end(await issuer.answer({ iat: seconds(), jti: "2" })),
    ],
    ["is an error", (response) => void response.writeHead(500).end("no")],
    ["sends elsewhere", (response) => void response.writeHead(302, { location: "/other" }).end()],
    ["breaks off", (response) => void response.socket?.destroy()],
  ])("treats a response that %s like an unreachable issuer", async (_what, how, failsAfterMs = 0) => {
    answer = how;
    const url = await start({ graceSeconds: 3600, kept: { since: new Date(0).toISOString() } });
    await clock.advance(lookMs);
    await eventually("a question", () => asked.length === 1);
    await clock.advance(failsAfterMs);
    await counted(url, failedChecks);
    expect(await state(url)).toBe("invalid");
    expect(asked).toEqual(['POST /status {"id":"1"}']);
    answer = sayGood;
    await clock.advance(retryMs);
    await becomes(url, "valid");
  });

  it("refuses a certificate of an unknown authority", async () => {
    const url = await start({ authority: (await selfSigned()).cert });
    await clock.advance(lookMs);
    await counted(url, failedChecks);
    expect(asked).toEqual([]);
  });
});
