import { once } from "node:events";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { Agent, fetch } from "undici";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { openTlsListener, type TlsListener } from "../../../../server/api/lifecycle/tls-listener.ts";
import type { ApiSettings } from "../../../../server/start/api-settings.ts";
import { type Certificate, selfSigned } from "../../../support/certificate.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { sampleOf, startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  type ScriptedModel,
  speakOn,
  speakTone,
  speakUntil,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";
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

describe("a client of the TLS listener", () => {
  let model: ScriptedModel;

  async function startApi(settings: Partial<ApiSettings> = {}): Promise<TestApi> {
    mount(certificate);
    model = await startScriptedModel(speakTone(0.1));
    open.push(() => model.close());
    const api = await startTestApi(model.url, { tls: { port: 0, certFile, keyFile }, ...settings });
    open.push(() => api.stop());
    return api;
  }

  /** Sends a request for speech, and records how the connection ends. The client reads after `resume` only. */
  function send({ tlsUrl, key }: TestApi, version: string) {
    const { hostname, port } = new URL(tlsUrl ?? "");
    const socket = connect({ host: hostname, port: Number(port), ca: certificate.cert });
    open.push(() => socket.destroy());
    const client = { socket, read: "", ending: "", closed: once(socket, "close").catch(() => undefined) };
    const body = JSON.stringify({ modelId: "arcana", speaker: "luna", text: "Hello." });
    const headers = [`authorization: Bearer ${key}`, "accept: audio/wav", "content-type: application/json"];
    socket.once("secureConnect", () => {
      socket.write(
        `POST /v1/svc-tts HTTP/${version}\r\nhost: x\r\n${headers.join("\r\n")}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      client.ending = error.code ?? "";
    });
    socket.on("end", () => {
      client.ending = "end";
    });
    return client;
  }

  it.each(["1.0", "1.1"])(
    "with HTTP/%s gets an error if its stream is interrupted, and none after a whole stream",
    async (version) => {
      const api = await startApi();
      const whole = send(api, version);
      whole.socket.on("data", (data) => {
        whole.read += data.toString("latin1");
        if (version === "1.1" && whole.read.endsWith("\r\n0\r\n\r\n")) whole.socket.end();
      });
      await whole.closed;
      expect(whole.ending).toBe("end");
      expect(whole.read).toContain("RIFF");
      const broken = send(api, version);
      model.script = async (call) => {
        await call.head(24_000);
        await call.tone(2400, 24_000);
        await eventually("the client to receive audio", () => broken.read.includes("RIFF"));
        call.cut();
      };
      broken.socket.on("data", (data) => {
        broken.read += data.toString("latin1");
      });
      await broken.closed;
      expect(broken.read).toContain("RIFF");
      // Chunks of HTTP/1.1 have an end of their own. In HTTP/1.0, only the end of the connection ends the response.
      if (version === "1.1") expect(broken.read).not.toContain("\r\n0\r\n\r\n");
      else expect(broken.ending).toBe("ECONNRESET");
    },
  );

  it.each(["1.0", "1.1"])(
    "with HTTP/%s that reads nothing loses its stream, and gets an error",
    async (version) => {
      const api = await startApi({ limits: { stallMs: 1_000 } });
      model.script = speakOn();
      const client = send(api, version);
      const streams = () => sampleOf(api.url, 'svc_tts_streams{model="arcana"}');
      await eventually("the stream of the client", async () => (await streams()) === 1);
      await eventually("the end of the stream", async () => (await streams()) === 0);
      client.socket.resume();
      await client.closed;
      expect(client.ending).toBe("ECONNRESET");
    },
  );
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
