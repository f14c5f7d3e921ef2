import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import type { SocketReport } from "../../../server/bench/sockets/socket-report.ts";
import { benchCommand } from "../../../server/cli/bench.ts";
import { eventually } from "../../support/eventually.ts";
import { folderOfTests } from "../../support/folder.ts";
import { pauseOfPeer } from "../../support/peers.ts";
import { startTestApi } from "../../support/server/api-tier.ts";
import { runInProcess } from "../../support/server/command-line.ts";
import { startScriptedModel } from "../../support/server/scripted-model.ts";
import { scriptedSeconds, speakWords } from "../../support/sockets/scripted-speech.ts";

const folder = folderOfTests("bench-sockets");
const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function bench(words: readonly string[], signal = new AbortController().signal) {
  const files = { json: join(folder, "run.json"), svg: join(folder, "run.svg") };
  const line = ["bench", "--ws", ...words, "--json", files.json, "--svg", files.svg];
  return {
    ...(await runInProcess([benchCommand], line, { signal })),
    report: () => JSON.parse(readFileSync(files.json, "utf8")) as SocketReport,
    plot: () => readFileSync(files.svg, "utf8"),
  };
}

describe("svc-tts bench --ws on the real API tier", () => {
  it("measures contexts and HTTP requests with the same first sentences", async () => {
    const model = await startScriptedModel(speakWords);
    open.push(() => model.close());
    const api = await startTestApi(model.url);
    open.push(() => api.stop());
    const ours = ["--url", api.url, "--key", api.key, "--voice", "abbie"];
    const { code, out, report, plot } = await bench([...ours, "--streams", "2", "--seconds", "4"]);

    expect(code).toBe(0);
    const { contexts, cancelled, chunkGaps, http, firstAudioExcessMs, contextsPerSecond } = report();
    expect(contexts.requests).toMatchObject({ failed: 0, successShare: 1 });
    expect(contexts.firstAudioMs?.p50).toBeGreaterThan(0);
    expect(http?.requests).toMatchObject({ failed: 0, successShare: 1 });
    expect(firstAudioExcessMs?.p50).toBeCloseTo(
      (contexts.firstAudioMs?.p50 ?? Number.NaN) - (http?.firstAudioMs?.p50 ?? Number.NaN),
      1,
    );
    expect(contextsPerSecond).toBeCloseTo(
      (contexts.requests.complete + cancelled.contexts) / contexts.elapsedSeconds,
      2,
    );
    expect(cancelled.contexts).toBeGreaterThan(0);
    expect(cancelled.silenceMs?.p99).toBeGreaterThan(0);
    expect(chunkGaps.count).toBeGreaterThanOrEqual(0);
    // Each text of the tool has one or two sentences, and the script sets the duration of each sentence.
    expect(contexts.audioSeconds).toBeGreaterThanOrEqual(scriptedSeconds * contexts.requests.complete);
    expect(out).toMatch(/ws − http +p50 -?[\d.]+ ms/);
    expect(plot()).toContain("WebSockets");
    const rates = new Set(model.calls.map(({ invocation }) => invocation.modelId));
    expect([...rates]).toEqual(["mist"]);
  });

  it("sends each text at the requested pace, and no HTTP requests, until it is stopped", async () => {
    const model = await startScriptedModel(speakWords);
    open.push(() => model.close());
    const api = await startTestApi(model.url);
    open.push(() => api.stop());
    const over = new AbortController();
    const ours = ["--url", api.url, "--key", api.key, "--voice", "abbie", "--ws-only", "--pace", "200"];
    const running = bench([...ours, "--streams", "1", "--seconds", "3600"], over.signal);
    await eventually("eight syntheses", () => model.calls.length >= 8);
    over.abort();
    const { code, report } = await running;
    expect(code).toBe(0);
    expect(report().contexts.requests.failed).toBe(0);
    expect(report().http).toBeUndefined();
    expect(report().firstAudioExcessMs).toBeUndefined();
  });

  it("counts refused upgrades by status, and fails if no context completes", async () => {
    const api = await startTestApi({});
    open.push(() => api.stop());
    const wrong = ["--url", api.url, "--key", "wrong", "--voice", "abbie", "--streams", "1"];
    const { code, report } = await bench([...wrong, "--seconds", "1", "--ws-only"]);
    expect(code).toBe(1);
    expect(Object.keys(report().contexts.requests.failedByCode)).toEqual(["http_401"]);
  });
});

const gapMs = 400;
const samplesPerChunk = 480;

interface Peer {
  readonly url: string;
  readonly frames: Record<string, string>[];
}

/** Starts a server whose responses to upgrades and messages the test defines. */
async function peerThat(
  answer: (socket: WebSocket, message: Record<string, string>) => Promise<void> | undefined,
  refuse: (upgrade: number) => boolean = () => false,
): Promise<Peer> {
  const frames: Peer["frames"] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer();
  let upgrades = 0;
  server.on("upgrade", (request, connection, head) => {
    upgrades += 1;
    if (refuse(upgrades)) {
      connection.end("HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(request, connection, head, (socket) =>
      socket.on("message", (data) => {
        const message = JSON.parse(String(data)) as Record<string, string>;
        frames.push(message);
        void answer(socket, message);
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(
    () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) socket.terminate();
        server.close(resolve);
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, frames };
}

const chunk = (contextId: string) =>
  JSON.stringify({ type: "chunk", data: Buffer.alloc(2 * samplesPerChunk).toString("base64"), contextId });
const done = (contextId: string) => JSON.stringify({ type: "done", contextId });

describe("svc-tts bench --ws on another server", () => {
  it("reports long gaps, cancels every fourth context at its first audio, and retries refused upgrades", async () => {
    const over = new AbortController();
    let current = "";
    let flushes = 0;
    const { url, frames } = await peerThat(
      async (socket, { operation, contextId }) => {
        if (operation === "clear") socket.send(done(current));
        if (operation !== "flush" || contextId === undefined) return;
        current = contextId;
        flushes += 1;
        if (flushes > 4) over.abort();
        socket.send(chunk(contextId));
        if (flushes % 4 === 0) return;
        await pauseOfPeer(gapMs);
        socket.send(chunk(contextId));
        socket.send(done(contextId));
      },
      (upgrade) => upgrade < 3,
    );
    const line = ["--url", url, "--streams", "1", "--seconds", "3600", "--ws-only"];
    const { code, report } = await bench(line, over.signal);
    expect(code).toBe(0);
    const { contexts, cancelled, chunkGaps } = report();
    expect(contexts.requests).toMatchObject({ complete: 3, failed: 0, unfinished: 1 });
    expect(cancelled.contexts).toBe(1);
    expect(frames.filter(({ operation }) => operation === "clear").length).toBe(1);
    expect(chunkGaps).toMatchObject({ count: 3, longShare: 1 });
    expect(chunkGaps.largestMs).toBeGreaterThan(gapMs - 5);
  });

  it("counts a context as failed if the socket closes, or audio comes after the end of a context", async () => {
    const over = new AbortController();
    let flushes = 0;
    const { url } = await peerThat((socket, { operation, contextId }) => {
      if (operation !== "flush" || contextId === undefined) return;
      flushes += 1;
      if (flushes === 1) socket.close(1011, "500: internal error");
      else if (flushes === 2) socket.send(chunk("another"));
      else if (flushes === 3) socket.send(JSON.stringify({ type: "error", message: "no", contextId }));
      else over.abort();
    });
    const { code, report } = await bench(["--url", url, "--streams", "1", "--ws-only"], over.signal);
    expect(code).toBe(1);
    expect(report().contexts.requests.failedByCode).toEqual({
      ...{ close_1011: 1, unexpected_message: 1, error_event: 1 },
    });
  });
});

describe("the command line of --ws", () => {
  it.each([
    [["--openai"], "--ws cannot be combined with --openai"],
    [["--gpu"], "--ws cannot be combined with --gpu"],
    [["--accept", "audio/mpeg"], "--ws measures audio/pcm only"],
    [["--pace", "0"], "--pace must be an integer from 1 to 1000"],
  ])("rejects %j with a reason", async (words, says) => {
    const line = ["--url", "http://127.0.0.1:1", ...words];
    expect(await bench(line)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(says) });
  });

  it("is part of the help", async () => {
    const { out } = await runInProcess([benchCommand], ["bench", "--help"]);
    expect(out).toMatch(/--ws {2,}measure WebSockets/);
    expect(out).toMatch(/--pace N {2,}with --ws: words per second/);
  });
});
