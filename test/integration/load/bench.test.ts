import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { voices } from "../../../config/contract/voices.ts";
import type { Report } from "../../../server/bench/report.ts";
import { benchCommand } from "../../../server/cli/bench.ts";
import { wavFile } from "../../support/audio/audio.ts";
import { eventually } from "../../support/eventually.ts";
import { folderOfTests } from "../../support/folder.ts";
import { pauseOfPeer, sendEvery } from "../../support/peers.ts";
import { sampleOf, startTestApi } from "../../support/server/api-tier.ts";
import { runInProcess } from "../../support/server/command-line.ts";
import { modelTier } from "../../support/server/model-tier.ts";

const folder = folderOfTests("bench");
const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function bench(args: readonly string[], signal = new AbortController().signal) {
  const files = { json: join(folder, "run.json"), svg: join(folder, "run.svg") };
  const line = ["bench", ...args, "--json", files.json, "--svg", files.svg];
  return {
    ...(await runInProcess([benchCommand], line, { signal })),
    run: () => JSON.parse(readFileSync(files.json, "utf8")) as Report,
    written: () => readFileSync(files.json, "utf8") + readFileSync(files.svg, "utf8"),
  };
}

describe("svc-tts bench on the real tiers", () => {
  it("reports the measured streams when it is stopped", async () => {
    const model = await modelTier({ tokens: { kind: "fixed", tokens: ["internal-token"] } });
    open.push(() => model.stop());
    const api = await startTestApi(model.url, { voices });
    open.push(() => api.stop());
    const texts = join(folder, "texts");
    writeFileSync(texts, "A secret sentence.\n\nAnother one, a little longer than the first.\n");

    const stop = new AbortController();
    const target = ["--url", api.url, "--key", api.key];
    const running = bench([...target, "--streams", "3", "--seconds", "3600", "--text", texts], stop.signal);
    const finished = () => sampleOf(api.url, "svc_tts_requests_total{");
    await eventually("six complete requests", async () => (await finished()) >= 6);
    stop.abort();
    const { code, out, run, written } = await running;

    expect(code).toBe(0);
    const { requests, firstAudioMs, realTimeFactor, playback, ...all } = run();
    expect(requests).toMatchObject({ failed: 0, failedByCode: {}, successShare: 1 });
    expect(requests.complete).toBeGreaterThan(0);
    expect(requests.complete + requests.unfinished).toBeGreaterThanOrEqual(6);
    expect(requests.unfinished).toBeLessThanOrEqual(3);
    expect(all.audioSeconds).toBeCloseTo(all.bytes / 2 / 16_000, 2); // The sampling rate of mist's raw PCM is 16 kHz.
    expect(all.audioSecondsPerSecond).toBeCloseTo((all.audioSeconds ?? 0) / all.elapsedSeconds, 2);
    // The speech of each text is longer than a second.
    expect(all.audioSeconds).toBeGreaterThan(requests.complete);
    expect(firstAudioMs?.p50).toBeGreaterThan(0);
    expect(firstAudioMs?.p99).toBeGreaterThanOrEqual(firstAudioMs?.p50 ?? Number.NaN);
    expect(all.firstAudioDistributionMs[50]).toBe(firstAudioMs?.p50);
    expect(realTimeFactor?.p50).toBeGreaterThan(0);
    expect(playback.streams).toBeGreaterThanOrEqual(requests.complete);
    expect(playback.smooth + playback.brief + playback.starved).toBe(playback.streams);
    expect(out).toContain(`${requests.complete} (100.0 % of the ended streams)`);
    expect(written()).not.toContain("secret");
    expect(written()).not.toContain(api.key);
  });

  it("counts rejected requests by the code of the problem document, and fails if no stream succeeded", async () => {
    const api = await startTestApi({});
    open.push(() => api.stop());
    const stop = new AbortController();
    const wrong = ["--url", api.url, "--key", "wrong", "--streams", "2", "--seconds", "3600"];
    const running = bench(wrong, stop.signal);
    // A stream sends its second request after it has counted its first rejection.
    const rejected = () => sampleOf(api.url, "http_errors_total{");
    await eventually("three rejected requests", async () => (await rejected()) >= 3);
    stop.abort();
    const { code, run } = await running;
    expect(code).toBe(1);
    const { requests, elapsedSeconds } = run();
    expect(requests.complete).toBe(0);
    expect(Object.keys(requests.failedByCode)).toEqual(["unauthorized"]);
    expect(requests.failed).toBe(requests.failedByCode.unauthorized);
    // A rejected stream waits for a tenth of a second, and timers may fire a millisecond early.
    expect(requests.failed).toBeLessThanOrEqual(2 * (1 + elapsedSeconds / 0.099));
  });
});

const pieceMs = 100;
const beforeAudioMs = 150;
const gapMs = 400;

/** Starts a server, which the end of the test stops. */
function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  open.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
  });
}

/**
 * Starts a server with the OpenAI-compatible API. The server sends the header immediately, and the audio late
 * and with a gap in the middle. It rejects every second request.
 * @param onRequest receives the number of each request, from 1
 */
function stutteringPeer(onRequest: (requests: number) => void = () => undefined): Promise<string> {
  let requests = 0;
  return serve(async (request, response) => {
    let body = "";
    for await (const piece of request) body += String(piece);
    const { input, response_format } = JSON.parse(body) as { input: string; response_format: string };
    if (request.url !== "/v1/audio/speech" || input === "" || response_format !== "wav") {
      response.writeHead(400).end();
      return;
    }
    onRequest(++requests);
    if (requests % 2 === 0) {
      response.writeHead(503, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { code: "overloaded", message: "later" } }));
    } else {
      const piece = wavFile(new Int16Array((pieceMs * 24_000) / 1000), 24_000);
      response.writeHead(200, { "content-type": "audio/wav" });
      response.write(piece.subarray(0, 44));
      await pauseOfPeer(beforeAudioMs);
      response.write(piece.subarray(44));
      await pauseOfPeer(gapMs);
      response.end(piece.subarray(44));
    }
  });
}

describe("svc-tts bench on a peer with the OpenAI-compatible API", () => {
  /** Runs the benchmark until the server receives the request with this number. */
  async function benchUntil(request: number) {
    const stop = new AbortController();
    const url = await stutteringPeer((requests) => {
      if (requests === request) stop.abort();
    });
    const args = ["--url", url, "--openai", "--accept", "audio/wav", "--streams", "1", "--seconds", "3600"];
    return bench(args, stop.signal);
  }

  it("measures the time to the first audio and not to the header, and detects a gap", async () => {
    const { code, run } = await benchUntil(5);
    expect(code).toBe(0);
    const { requests, firstAudioMs, realTimeFactor, playback } = run();
    expect(requests).toMatchObject({ complete: 2, failedByCode: { overloaded: 2 } });
    expect(firstAudioMs?.p50).toBeGreaterThan(beforeAudioMs - 5);
    expect(playback.starved).toBeGreaterThanOrEqual(requests.complete);
    const leastFactor = (beforeAudioMs + gapMs) / (2 * pieceMs);
    expect(realTimeFactor?.p50).toBeGreaterThan(leastFactor - 0.1);
  });

  it("reports the requests so far when it is aborted", async () => {
    const { run } = await benchUntil(3);
    expect(run().requests).toMatchObject({ complete: 1, failedByCode: { overloaded: 1 } });
  });
});

/** Starts a server that sends a second of audio immediately. */
function quickPeer(): Promise<string> {
  return serve((_request, response) => {
    response.writeHead(200, { "content-type": "audio/wav" });
    response.end(wavFile(new Int16Array(24_000), 24_000));
  });
}

const tokenEveryMs = 10;

/**
 * Starts a server in place of vLLM. It generates a token every 10 ms for each request, and a token every 100
 * ms for another client.
 * @param onRequest called for each request of a completion
 */
function slowVllm(onRequest: () => void): Promise<string> {
  let tokens = 0;
  const stopOthers = sendEvery(100, () => tokens++);
  open.push(async () => stopOthers());
  return serve(async (request, response) => {
    if (request.url === "/v1/models") return void response.end(JSON.stringify({ data: [{ id: "arcana" }] }));
    if (request.url === "/metrics")
      return void response.end(`vllm:generation_tokens_total{model_name="arcana"} ${tokens}.0\n`);
    let body = "";
    for await (const piece of request) body += String(piece);
    const { model, prompt, ignore_eos } = JSON.parse(body);
    if (model !== "arcana" || !Array.isArray(prompt) || !ignore_eos)
      return void response.writeHead(400).end();
    onRequest();
    response.writeHead(200, { "content-type": "text/event-stream" });
    const stopWriting = sendEvery(tokenEveryMs, () => {
      tokens++;
      response.write("data: {}\n\n");
    });
    response.on("close", stopWriting);
  });
}

describe("svc-tts bench --gpu", () => {
  const openai = ["--openai", "--accept", "audio/wav", "--gpu", "--seconds", "1"];
  type Steps = {
    most: number;
    isBounded: boolean;
    steps: { run: Report; tokensPerSecond: number; plainTokensPerSecond: number }[];
  };

  it("measures each number of streams, and reports vLLM's tokens without those of other clients", async () => {
    let completions = 0;
    const vllm = await slowVllm(() => completions++);
    const { code, out, run } = await bench([
      ...openai,
      ...["--url", await quickPeer()],
      ...["--steps", "1,2"],
      ...["--vllm", vllm],
    ]);
    const { most, isBounded, steps } = run() as unknown as Steps;
    // The number of streams depends on the machine.
    expect(code).toBe(most > 0 ? 0 : 1);
    expect(isBounded).toBe(most < 2);
    expect(out).toContain(`streams per GPU: ${isBounded ? "" : "at least "}${most} (${most} on 1;`);
    expect(steps.map(({ run: { streams } }) => streams)).toEqual([1, 2]);
    expect(completions).toBeGreaterThan(0);
    // The test uses the higher figure of the two runs, because the machine may pause during one run.
    const highest = (of: "tokensPerSecond" | "plainTokensPerSecond") =>
      Math.max(...steps.map((step) => step[of]));
    expect(highest("tokensPerSecond")).toBeGreaterThan(0);
    expect(highest("plainTokensPerSecond")).toBeGreaterThan(highest("tokensPerSecond"));
  });

  it("fails and reports zero streams if a single stream is slower than real time", async () => {
    const { code, out } = await bench([...openai, "--url", await stutteringPeer(), "--steps", "1"]);
    expect(code).toBe(1);
    expect(out).toContain("streams per GPU: 0 (0 on 1;");
  });
});

describe("the bench command line", () => {
  it.each([
    [["--url", "here"], "--url must be an address"],
    [["--url", "http://x", "--streams", "0"], "--streams must be an integer from 1 to 10000"],
    [["--url", "http://x", "--seconds", "1.5"], "--seconds must be an integer"],
    [["--url", "http://x", "--accept", "audio/*"], "--accept must be an audio type"],
    [["--url", "http://x", "--format", "ogg"], "--format must be one of mp3, mulaw, pcm"],
    [["--url", "http://x", "--openai", "--accept", "audio/x-mulaw"], "--accept with --openai must be one of"],
    [["--url", "http://x", "--text", "/nowhere"], "--text /nowhere: "],
    [["--url", "http://x", "--openai=yes"], "--openai"],
    [
      ["--url", "http://x", "--gpu", "--steps", "8,1"],
      "--steps must be integers from 1 to 10000 in ascending order",
    ],
    [["--url", "http://x", "--gpu", "--vllm", "there"], "--vllm must be an address"],
    [[], "--url URL is required"],
  ])("rejects %j with a message that names the allowed values", async (args, message) => {
    expect(await bench(args)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(message) });
  });

  it("prints its help with all options", async () => {
    const { code, out } = await bench(["--help"]);
    expect(code).toBe(0);
    expect(out).toMatch(/--openai {2,}use the OpenAI-compatible API/);
    expect(out).toMatch(/--streams N.*\(default 4\)/);
  });
});
