/**
 * Attacks the server as a client that has no key and no session: it exhausts memory with announced bodies, it
 * tries to block sign-ins, set-up and invitations, and it looks for vLLM's port. The API tier and `mist` run
 * as separate processes. Attackers and users have different addresses of this machine. The figures are
 * printed and not asserted: docs/evidence/attacks.md contains the figures of one run.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request as send } from "node:http";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { env as names } from "../../../config/contract/names.ts";
import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import { VllmEngine } from "../../../server/engine/vllm/engine.ts";
import { ScriptedVllm } from "../../support/generator/scripted-vllm.ts";
import { leasePort } from "../../support/port-lease.ts";
import {
  makeTierFiles,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/server/tier-process.ts";
import { addSignedInUser, invited, Visitor } from "../../support/server/visitor.ts";

const setupToken = "a-long-text-that-the-server-made-for-its-first-owner";
const password = "four plain words here";
const attacker = "127.0.0.2";
const announcedBytes = 16 * 1024 * 1024;
const requestsInSeries = 20;

let files: TierFiles;
let mist: TierProcess;
let api: TierProcess;
let owner: Visitor;

beforeAll(async () => {
  files = await makeTierFiles();
  const folder = dirname(files.keysFile);
  writeFileSync(join(folder, "setup"), `${setupToken}\n`);
  mist = await startTierProcess("mist", files);
  files.route({ mist: [{ service: mist.url, weight: 1, pool: "mist", idle: false }] });
  api = await startTierProcess("api", files, {
    [names.database]: join(folder, "attacked.db"),
    [names.dashboardUrl]: "http://127.0.0.1:8000",
    [names.dashboardSetupFile]: join(folder, "setup"),
  });
  owner = new Visitor(api.url);
});
afterAll(async () => {
  await api?.kill("SIGTERM");
  await mist?.kill("SIGTERM");
  files.remove();
});

/** Posts a form from another address. @returns the status */
async function postFrom(address: string, path: string, fields: Record<string, string>): Promise<number> {
  const outgoing = send(`${api.url}${path}`, {
    method: "POST",
    localAddress: address,
    headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" },
  });
  outgoing.end(new URLSearchParams(fields).toString());
  const [response] = (await once(outgoing, "response")) as [import("node:http").IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode ?? 0;
}

/** Sends the head of a request and one byte of its body, and keeps the connection open. */
async function holdOpen([path, type]: readonly [path: string, type: string]): Promise<Socket> {
  const { hostname, port, host } = new URL(api.url);
  const socket = connect({ host: hostname, port: Number(port), localAddress: attacker });
  socket.on("error", () => undefined); // The server may close the connection at any time.
  await once(socket, "connect");
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\nContent-Length: ${announcedBytes}\r\n\r\n{`,
  );
  return socket;
}

/** Requests speech with a body of 70 KiB. @returns the status and the time until the end of the response */
async function largeRequest(): Promise<{ status: number; tookMs: number }> {
  const body = JSON.stringify({
    text: "Hello.",
    speaker: "alan",
    modelId: "mist",
    note: "x".repeat(70 * 1024),
  });
  const startMs = performance.now();
  const response = await fetch(`${api.url}/v1/svc-tts`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${files.key}`,
      "content-type": "application/json",
      accept: "audio/pcm",
    },
    body,
  });
  await response.arrayBuffer();
  return { status: response.status, tookMs: performance.now() - startMs };
}

async function largeRequests() {
  const results = [];
  for (let i = 0; i < requestsInSeries; i++) results.push(await largeRequest());
  const times = ascending(results.map(({ tookMs }) => tookMs));
  const succeeded = results.filter(({ status }) => status === 200).length;
  return { succeeded, p50: quantile(times, 0.5), slowest: times.at(-1) ?? 0 };
}

function countOf(statuses: readonly number[]): string {
  const groups = Map.groupBy(statuses, (status) => status);
  return [...groups].map(([status, { length }]) => `${length} × ${status}`).join(", ");
}

async function inParallel(count: number, work: (i: number) => Promise<number>): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => work(i)));
}

describe("connections that announce a large body and send one byte", () => {
  it.each([4, 64])("do not prevent large requests with a key (%s connections)", async (count) => {
    const before = await largeRequests();
    const targets = [
      ["/dashboard/login", "application/json"],
      ["/dashboard/setup", "application/x-www-form-urlencoded"],
      ["/v1/svc-tts", "application/json"],
      ["/v1/audio/speech", "application/json"],
    ] as const;
    const sockets: Socket[] = [];
    for (let i = 0; i < count; i++) sockets.push(await holdOpen(targets[i % targets.length] ?? targets[0]));
    const during = await largeRequests();
    for (const socket of sockets) socket.destroy();
    const line = ({ succeeded, p50, slowest }: typeof before) =>
      `${succeeded} of ${requestsInSeries} succeeded, p50 ${p50.toFixed(0)} ms, slowest ${slowest.toFixed(0)} ms`;
    console.info(`${count} slow connections: before: ${line(before)}; during: ${line(during)}`);
    expect([before.succeeded, during.succeeded]).toEqual([requestsInSeries, requestsInSeries]);
  });
});

describe("invalid forms from another address", () => {
  it("do not prevent the set-up, the sign-in of the owner, or invitations", async () => {
    const junkSetup = { token: "junk", name: "eve", password };
    const setups = await inParallel(300, () => postFrom(attacker, "/dashboard/setup", junkSetup));
    // These requests have the owner's address, as behind a proxy that is not in SVC_TTS_TRUSTED_PROXIES.
    const sameAddress = await inParallel(300, () => postFrom("127.0.0.1", "/dashboard/setup", junkSetup));
    const created = await owner.post("/dashboard/setup", { token: setupToken, name: "ada", password });
    expect(created.headers.get("location")).toBe("/dashboard/keys");

    const after = await inParallel(300, () => postFrom(attacker, "/dashboard/setup", junkSetup));
    const guesses = await inParallel(60, (i) =>
      postFrom(attacker, "/dashboard/login", { name: "ada", password: `guess number ${i}` }),
    );
    const signIn = await new Visitor(api.url).post("/dashboard/login", { name: "ada", password });
    expect(signIn.status).toBe(303);

    const joins = await inParallel(300, (i) =>
      postFrom(attacker, "/dashboard/join", { link: `junk ${i}`, password }),
    );
    const link = await invited(owner, { name: "bob", role: "member", team: "blue" });
    const joined = await new Visitor(api.url).post("/dashboard/join", { link, password });
    expect(joined.status).toBe(303);
    console.info(
      [
        `/dashboard/setup before the set-up: ${countOf(setups)}`,
        `the same from the owner's address: ${countOf(sameAddress)}; the owner's set-up: ${created.status}`,
        `/dashboard/setup after it: ${countOf(after)}`,
        `/dashboard/login with wrong passwords: ${countOf(guesses)}; the owner's sign-in: ${signIn.status}`,
        `/dashboard/join with unknown links: ${countOf(joins)}; the invited user: ${joined.status}`,
      ].join("\n"),
    );
    expect(new Set(guesses)).toContain(429);
  });

  it("do not prevent other users from joining and signing in from the address of the attacker", async () => {
    const local = "127.0.0.1";
    const joins = await inParallel(50, (i) =>
      postFrom(local, "/dashboard/join", { link: `junk ${i}`, password }),
    );
    const eve = await addSignedInUser(owner, api.url, {
      name: "cid",
      role: "member",
      team: "blue",
      password,
    });
    expect((await eve.get("/dashboard/keys")).status).toBe(200);
    console.info(`the same address: /dashboard/join with unknown links: ${countOf(joins)}`);
  });
});

describe("vLLM's port", () => {
  /** Tries to connect. @returns `connected` or the code of the error */
  async function knock(host: string, port: number): Promise<string> {
    const socket = connect({ host, port });
    try {
      await once(socket, "connect");
      return "connected";
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? "error";
    } finally {
      socket.destroy();
    }
  }

  it("accepts connections only from its own pod, and the relay serves only the metrics", async () => {
    const own = await ScriptedVllm.create();
    const metricsPort = await leasePort();
    // A listener on all addresses of the machine would accept connections to this address.
    const outside = "127.0.0.3";
    const server = { ...own.settings.server, metricsPort };
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const engine = await VllmEngine.open({ ...own.settings, server, maxStreams: 4, host: outside, log });
    try {
      const { port = 0 } = own.settings.server as { port?: number };
      const knocks = { inside: await knock("127.0.0.1", port), outside: await knock(outside, port) };
      const paths = [
        "/metrics",
        "/v1/completions",
        "/invocations",
        "/tokenize",
        "/pause",
        "/update_weights",
        "/health",
      ];
      const statuses: string[] = [];
      for (const path of paths)
        statuses.push(`${path} ${(await fetch(`http://${outside}:${metricsPort}${path}`)).status}`);
      console.info(`vLLM: ${JSON.stringify(knocks)}; relay: ${statuses.join(", ")}`);
      expect(knocks).toEqual({ inside: "connected", outside: "ECONNREFUSED" });
      expect(statuses).toEqual(paths.map((path) => `${path} ${path === "/metrics" ? 200 : 404}`));
    } finally {
      await engine.close();
      own.delete();
    }
  });
});
