import { once } from "node:events";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { Agent, fetch } from "undici";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { openTlsListener, type TlsListener } from "../../../../server/api/lifecycle/tls-listener.ts";
import { type Certificate, selfSigned } from "../../../support/certificate.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { speakTone, speakUntil, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { SocketClient } from "../../../support/sockets/client.ts";

const folder = folderOfTests("tls");
const [certFile, keyFile] = [join(folder, "mounted", "tls.crt"), join(folder, "mounted", "tls.key")];
const open: (() => unknown)[] = [];
let versions = 0;
let certificate: Certificate;

beforeAll(async () => {
  certificate = await selfSigned();
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Replaces the symbolic link of the folder, as the kubelet does for a mounted Secret. */
function mount({ cert, key }: { readonly cert: Buffer | string; readonly key: Buffer | string }): void {
  const version = join(folder, `version-${versions++}`);
  mkdirSync(version);
  writeFileSync(join(version, "tls.crt"), cert);
  writeFileSync(join(version, "tls.key"), key);
  symlinkSync(version, `${version}-link`);
  renameSync(`${version}-link`, join(folder, "mounted"));
}

describe("the TLS listener of the API tier", () => {
  async function start(script = speakTone(0.3)): Promise<TestApi> {
    mount(certificate);
    const model = await startScriptedModel(script);
    open.push(() => model.close());
    return startTestApi(model.url, { tls: { port: 0, certFile, keyFile } });
  }

  function request({ tlsUrl, key }: TestApi) {
    const dispatcher = new Agent({ connect: { ca: certificate.cert } });
    open.push(() => dispatcher.destroy());
    return fetch(`${tlsUrl}/v1/svc-tts`, {
      ...{ dispatcher, method: "POST" },
      headers: {
        ...{ authorization: `Bearer ${key}`, accept: "audio/pcm" },
        "content-type": "application/json",
      },
      body: JSON.stringify({ modelId: "arcana", speaker: "luna", text: "Hello." }),
    });
  }

  it("serves the same routes as plain HTTP, which stays available", async () => {
    const api = await start();
    open.push(() => api.stop());
    const secure = await request(api);
    const plain = await api.post(
      { modelId: "arcana", speaker: "luna", text: "Hello." },
      { accept: "audio/pcm" },
    );
    expect([secure.status, plain.status]).toEqual([200, 200]);
    expect(Buffer.from(await secure.arrayBuffer()).equals(Buffer.from(await plain.arrayBuffer()))).toBe(true);
  });

  it("serves WebSockets", async () => {
    const api = await start();
    open.push(() => api.stop());
    const url = `${api.tlsUrl?.replace("https", "wss")}/ws3?speaker=luna&audioFormat=pcm`;
    const headers = { authorization: `Bearer ${api.key}` };
    const client = new SocketClient(new WebSocket(url, { headers, ca: certificate.cert }), {});
    client.socket.once("open", () => client.send({ text: "Hello. " }, { operation: "eos" }));
    expect(await client.closed()).toMatchObject({ code: 1000 });
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
  });

  it("finishes its streams when the server stops, and accepts no new connections", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const api = await start(speakUntil(released));
    const answer = await request(api);
    const body = answer.arrayBuffer();
    const stopped = api.stop();
    await eventually("new connections are refused", () =>
      request(api).then(
        () => false,
        () => true,
      ),
    );
    release();
    expect((await body).byteLength).toBe(2 * 2400);
    await stopped;
  });

  it("does not start without a valid pair of files", async () => {
    mount({ cert: certificate.cert, key: "no key" });
    const start = startTestApi({}, { tls: { port: 0, certFile, keyFile } });
    await expect(start).rejects.toThrow(
      `${certFile} and ${keyFile} are not a certificate and its private key`,
    );
  });
});

describe("a changed certificate", () => {
  const clock = new FakeClock();
  const logged: string[] = [];
  const note = (facts: object, message: string) => {
    logged.push("validTo" in facts ? message : `${message}: ${(facts as { err: Error }).err.message}`);
  };
  const log = { info: note, warn: note, error: note };

  async function listen(): Promise<{ listener: TlsListener; port: number }> {
    logged.length = 0;
    mount(certificate);
    const http = createServer((_request, response) => response.end("hello"));
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const listener = openTlsListener({ port: 0, certFile, keyFile }, http, { log, clock });
    open.push(
      () => http.close(),
      () => listener.close(),
    );
    return { listener, port: Number(new URL(await listener.listen("127.0.0.1")).port) };
  }

  function shown(port: number): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const socket: TLSSocket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.toString() ?? "");
      socket.destroy();
    });
    socket.once("error", reject);
    return promise;
  }

  it("is used for new connections within ten seconds, and open connections continue", async () => {
    const { port } = await listen();
    const kept = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
    open.push(() => kept.destroy());
    await once(kept, "secureConnect");
    expect(await shown(port)).toBe(certificate.cert.toString());
    const next = await selfSigned();
    mount(next);
    await clock.advance(10_000);
    expect(await shown(port)).toBe(next.cert.toString());
    expect(logged).toEqual(["the TLS certificate is loaded", "the TLS certificate was replaced"]);
    let text = "";
    kept.on("data", (data) => {
      text += String(data);
    });
    kept.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await eventually("the first connection still works", () => text.includes("hello"));
  });

  it("is ignored while its files are invalid or missing: the last valid pair stays in use, and the problem is logged once", async () => {
    const { port } = await listen();
    const next = await selfSigned();
    mount({ cert: next.cert, key: certificate.key });
    await clock.advance(30_000);
    expect(await shown(port)).toBe(certificate.cert.toString());
    expect(logged.slice(1)).toEqual([expect.stringContaining("the last valid certificate stays in use: ")]);
    mount({ cert: "", key: "" });
    await clock.advance(20_000);
    expect(logged.length).toBe(3);
    mount(certificate);
    await clock.advance(10_000);
    mount({ cert: "", key: "" });
    await clock.advance(10_000);
    expect(logged.length, "the same problem is logged again after a valid pair").toBe(4);
    mount(next);
    await clock.advance(10_000);
    expect(await shown(port)).toBe(next.cert.toString());
    expect(logged.at(-1)).toBe("the TLS certificate was replaced");
  });
});
