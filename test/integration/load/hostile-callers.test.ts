import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { residentBytes } from "../../bench/process-figures.ts";
import { rawRequest } from "../../support/api-tier.ts";
import { eventually } from "../../support/eventually.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../support/scripted-model.ts";
import {
  descriptorsOf,
  makeTierFiles,
  routeTo,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/tier-process.ts";

const mebibyte = 1024 * 1024;

let files: TierFiles;
let model: ScriptedModel;
let api: TierProcess;
let port: number;

beforeAll(async () => {
  files = await makeTierFiles();
  model = await startScriptedModel(speakTone(0.1));
  files.route({ mist: routeTo(model.url), arcana: routeTo(model.url) });
  api = await startTierProcess("api", files, {
    SVC_TTS_REQUEST_SECONDS: "2",
    SVC_TTS_STALL_SECONDS: "2",
    NODE_OPTIONS: "--max-old-space-size=96", // so that garbage is not taken for a leak
  });
  port = Number(new URL(api.url).port);
});

afterAll(async () => {
  await api.kill("SIGTERM");
  await model.close();
  files.remove();
});

const speech = JSON.stringify({ speaker: "luna", modelId: "arcana", text: "Hello." });

function headersOf(more: readonly string[] = []): string {
  return [
    "host: x",
    `authorization: Bearer ${files.key}`,
    "content-type: application/json",
    ...more,
    "",
    "",
  ].join("\r\n");
}

function post(more: readonly string[] = [], body = speech): string {
  return `POST /v1/svc-tts HTTP/1.1\r\n${headersOf([`content-length: ${body.length}`, ...more])}${body}`;
}

/** A caller that never fails by itself: whatever happens is in what it read, and how it ended. */
class Caller {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  ending = "";
  #read = "";

  constructor(readsNothing = false) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.ending = error.code ?? "";
    });
    if (!readsNothing) {
      this.socket.on("data", (piece) => {
        if (this.#read.length < mebibyte) this.#read += piece.toString("latin1");
      });
      this.socket.on("end", () => {
        this.ending = "end";
      });
    }
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
  }

  get read(): string {
    return this.#read;
  }
}

/** How long `/health` takes, which must tell the truth all the while. */
async function healthMs(): Promise<number> {
  const startedAt = performance.now();
  const answer = await fetch(`${api.url}/health`);
  expect({ status: answer.status, ...((await answer.json()) as object) }).toMatchObject({
    status: 200,
    apiStatus: "ok",
    modelReachable: true,
  });
  return performance.now() - startedAt;
}

async function inFlight(): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  return Number(/^svc_tts_streams\{model="arcana"\} (\d+)$/m.exec(text)?.[1]);
}

describe("a caller who sends slowly", () => {
  it.each<[string, () => string]>([
    ["its headers", () => "GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: "],
    ["its body", () => `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100000"])}`],
  ])("%s is told so and loses its connection, and others are served meanwhile", async (_what, opening) => {
    const callers = Array.from({ length: 50 }, () => new Caller());
    for (const { socket } of callers) socket.write(opening());
    const drip = setInterval(() => {
      for (const { socket } of callers) if (socket.writable) socket.write(" ");
    }, 100);
    expect(await healthMs()).toBeLessThan(2000);
    await Promise.all(callers.map(({ closed }) => closed));
    clearInterval(drip);
    for (const { read } of callers) {
      expect(read).toMatch(/^HTTP\/1.1 408 /);
      expect(read).toContain('"code":"request_timeout"');
    }
  });
});

describe("a body that is not what its headers say", () => {
  it("shorter, with the connection closed for writing, is a problem", async () => {
    const caller = new Caller();
    caller.socket.end(`POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100"])}{"speaker"`);
    await caller.closed;
    expect(caller.read).toMatch(/^HTTP\/1.1 (400|408) /);
    expect(caller.read).toContain("application/problem+json");
  });

  it("shorter, with the connection reset, harms nobody", async () => {
    const caller = new Caller();
    caller.socket.write(`POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["content-length: 100"])}{"speaker"`);
    await sleep(100);
    caller.socket.resetAndDestroy();
    await healthMs();
    expect(api.said()).not.toContain("unforeseen");
  });

  it.each<[string, () => string]>([
    ["longer", () => post().replace(/content-length: \d+/, "content-length: 10")],
    ["of two lengths", () => post(["content-length: 3"])],
    ["of a length and chunked", () => post(["transfer-encoding: chunked"])],
    ["of a length below nothing", () => post().replace(/content-length: \d+/, "content-length: -1")],
    [
      "of chunks that are none",
      () => `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["transfer-encoding: chunked"])}no\r\n`,
    ],
  ])("%s is refused as malformed", async (_what, bytes) => {
    const { text } = await rawRequest(api.url, bytes());
    expect(text).toMatch(/HTTP\/1.1 400 /);
    expect(text).toMatch(/"code":"malformed_(http|json)"/);
  });
});

describe("headers", () => {
  it.each([
    ["one that is huge", `x: ${"y".repeat(20_000)}`],
    ["many that are huge together", Array.from({ length: 3000 }, (_, i) => `x${i}: y`).join("\r\n")],
  ])("%s are refused", async (_what, lines) => {
    const { text } = await rawRequest(api.url, `GET /livez HTTP/1.1\r\nhost: x\r\n${lines}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1.1 431 /);
    expect(text).toContain('"code":"headers_too_large"');
  });

  it("in great number but small are taken", async () => {
    const lines = Array.from({ length: 500 }, () => "x: y").join("\r\n");
    const { text } = await rawRequest(
      api.url,
      `GET /livez HTTP/1.1\r\nconnection: close\r\n${lines}\r\nhost: x\r\n\r\n`,
    );
    expect(text).toMatch(/^HTTP\/1.1 200 /);
  });

  it("without Host are refused with a problem document in HTTP/1.1, and taken in HTTP/1.0", async () => {
    const { text } = await rawRequest(api.url, "GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n");
    expect(text).toMatch(/^HTTP\/1.1 400 /);
    expect(text).toContain('"code":"malformed_http"');
    expect((await rawRequest(api.url, "GET /livez HTTP/1.0\r\n\r\n")).text).toMatch(/^HTTP\/1.1 200 /);
  });

  it("that expect 100-continue get it once the key is known to be good", async () => {
    const asking = `POST /v1/svc-tts HTTP/1.1\r\n${headersOf(["expect: 100-continue", "connection: close", "accept: audio/wav", `content-length: ${speech.length}`])}`;
    const caller = new Caller();
    caller.socket.write(asking);
    await eventually("it is told to go on", () => caller.read.startsWith("HTTP/1.1 100 Continue\r\n\r\n"));
    caller.socket.write(speech);
    await caller.closed;
    expect(caller.read).toContain("HTTP/1.1 200 OK");
    const refused = new Caller();
    refused.socket.write(asking.replace(files.key, "wrong"));
    await refused.closed;
    expect(refused.read).toMatch(/^HTTP\/1.1 401 /);
  });

  it("that expect something else are taken as if they did not", async () => {
    const { text } = await rawRequest(
      api.url,
      post(["expect: tea", "connection: close", "accept: audio/wav"]),
    );
    expect(text).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe("many at once", () => {
  it("on one connection are answered in order", async () => {
    const many = Array.from({ length: 20 }, (_, i) => post([`x-request-id: r${i}`, "accept: audio/pcm"]));
    const last = "GET /livez HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n";
    const { text } = await rawRequest(api.url, many.join("") + last);
    const ids = [...text.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id);
    expect(ids).toEqual([...many.map((_, i) => `r${i}`), "last"]);
  });

  it("on one connection that is dropped leave nothing in flight", async () => {
    model.script = (call) => call.head(24_000); // and never a sound
    const caller = new Caller();
    caller.socket.write(post(["accept: audio/pcm"]).repeat(20));
    await eventually("all are in flight", async () => (await inFlight()) === 20);
    caller.socket.destroy();
    await eventually("none is in flight", async () => (await inFlight()) === 0);
    model.script = speakTone(0.1);
  });

  it("a thousand connections, idle and half sent, hold nobody else back and leave nothing behind", async () => {
    const wave = async () => {
      const callers = Array.from({ length: 1000 }, () => new Caller());
      await Promise.all(callers.map(({ socket }) => once(socket, "connect")));
      const [half, whole] = [callers.slice(0, 500), callers.slice(500)];
      for (const { socket } of half) socket.write(post().slice(0, -20));
      for (const { socket } of whole) socket.write(post(["accept: audio/pcm"]));
      await eventually("all of the whole ones are answered", () =>
        whole.every(({ read }) => read.includes("\r\n\r\n")),
      );
      // on a slow machine the model may not take 500 connections in time
      for (const { read } of whole) expect(read).toMatch(/^HTTP\/1.1 (200 OK|503 .*retry-after)/s);
      const slowestMs = await healthMs();
      for (const { socket } of callers) socket.destroy();
      await Promise.all(callers.map(({ closed }) => closed));
      return slowestMs;
    };
    await wave();
    const descriptors = descriptorsOf(api.pid);
    const memory = residentBytes(api.pid);
    for (let round = 0; round < 2; round++) expect(await wave()).toBeLessThan(2000);
    await eventually("no connection is left", () => descriptorsOf(api.pid) <= descriptors);
    expect(residentBytes(api.pid) - memory).toBeLessThan(64 * mebibyte);
    expect(await inFlight()).toBe(0);
  });
});

describe("what is held at once is bounded", () => {
  let usual: TierProcess;
  beforeAll(async () => {
    usual = await startTierProcess("api", files, { SVC_TTS_MAX_HELD_BYTES: String(128 * mebibyte) });
  });
  afterAll(() => usual.kill("SIGTERM"));

  const send = (body: string, accept: string) =>
    fetch(`${usual.url}/v1/svc-tts`, {
      method: "POST",
      headers: { authorization: `Bearer ${files.key}`, "content-type": "application/json", accept },
      body,
    });

  it("with large bodies: each is served or told to come back, and memory stays within bounds", async () => {
    const body = JSON.stringify({
      speaker: "luna",
      modelId: "arcana",
      text: "word ".repeat((15.9 * mebibyte) / 5),
    });
    const answers = await Promise.all(
      Array.from({ length: 24 }, async () => {
        const answer = await send(body, "audio/pcm");
        await answer.arrayBuffer();
        return answer;
      }),
    );
    const statuses = answers.map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(statuses.includes(503) ? [200, 503] : [200]));
    for (const answer of answers)
      if (answer.status === 503) expect(answer.headers.get("retry-after")).toBe("2");
    expect(residentBytes(usual.pid)).toBeLessThan(1200 * mebibyte);
    expect((await send(speech, "audio/pcm")).status).toBe(200);
  });

  it("with large JSON answers", async () => {
    const second = new Int16Array(24_000);
    model.script = async (call) => {
      await call.head(24_000);
      for (let i = 0; i < 400; i++) await call.send({ kind: "audio", samples: second }); // 19 MB of WAV
      await call.end(400 * 24_000);
    };
    const ask = { speaker: "luna", modelId: "arcana", text: "Hello.", audioFormat: "wav" };
    const answers = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const answer = await send(JSON.stringify(ask), "application/json");
        return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
      }),
    );
    model.script = speakTone(0.1);
    const whole = answers.filter(({ status }) => status === 200);
    expect(whole.length).toBeGreaterThanOrEqual(6); // as many as fit at once
    for (const { bytes } of whole) expect(bytes).toBe(19 + 4 * Math.ceil((44 + 400 * 48_000) / 3));
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    expect(residentBytes(usual.pid)).toBeLessThan(1200 * mebibyte);
  });
});

describe("a reader", () => {
  it("that reads nothing loses its stream, and one that reads slowly keeps it", async () => {
    model.script = async (call) => {
      let over = false;
      void call.aborted.then(() => {
        over = true;
      });
      await call.head(24_000);
      while (!over) await call.tone(24_000, 24_000);
    };
    const [lazy, slow] = [new Caller(true), new Caller(true)];
    for (const { socket } of [lazy, slow]) socket.write(post(["accept: audio/pcm"]));
    let slowly = 0;
    const sip = setInterval(() => {
      slowly += (slow.socket.read() as Buffer | null)?.length ?? 0;
    }, 150);
    await eventually("the lazy one is cut", async () => (await inFlight()) === 1);
    const before = slowly;
    await sleep(4000);
    expect(await inFlight()).toBe(1);
    expect(slowly - before).toBeGreaterThan(256 * 1024);
    clearInterval(sip);
    for (const { socket } of [lazy, slow]) socket.destroy();
    await eventually("none is in flight", async () => (await inFlight()) === 0);
    model.script = speakTone(0.1);
  });

  it("by HTTP/1.0 gets no chunks, and a stream that broke off ends in a reset", async () => {
    const ask = post(["accept: audio/wav"]).replace("HTTP/1.1", "HTTP/1.0");
    const whole = new Caller();
    whole.socket.write(ask);
    await whole.closed;
    expect(whole.ending).toBe("end");
    expect(whole.read).not.toMatch(/transfer-encoding/i);
    expect(whole.read.slice(whole.read.indexOf("\r\n\r\n") + 4)).toHaveLength(44 + 4800);
    model.script = async (call) => {
      await call.head(24_000);
      await call.tone(2400, 24_000);
      await sleep(100);
      call.cut();
    };
    const broken = new Caller();
    broken.socket.write(ask);
    await broken.closed;
    expect(broken.read).toContain("RIFF");
    expect(broken.ending).toBe("ECONNRESET");
    model.script = speakTone(0.1);
  });
});
